# Runs on the board: an empty folder for an update, the folders it will fill, and copies
# of files that are not ours.  The sender sets `folders`, parents first, and `foreign`.
import os


def make(folder):
    try:
        os.mkdir(folder)
    except OSError as error:
        if error.errno != 17:  # EEXIST
            raise


def keep(path):
    # A copy, as the board runs the old files until the update is decided.
    make("/backup")
    name = path.replace("/", "_")
    number = 0
    while name in os.listdir("/backup"):
        number += 1
        name = path.replace("/", "_") + ".%d" % number
    with open(path, "rb") as source, open("/backup/" + name, "wb") as target:
        while True:
            data = source.read(512)
            if not data:
                break
            target.write(data)


def remove_folder(path, *first):
    try:
        names = os.listdir(path)
    except OSError:
        return
    # Files that decide something go first, so that half a folder decides nothing.
    for name in sorted(names, key=lambda name: (first + (name,)).index(name)):
        os.remove(path + "/" + name)
    os.rmdir(path)


remove_folder("/staged", "ready")
# If an update over the air is on trial, its end would replace what comes now.
remove_folder("/previous", "trial", "ready", "list")
remove_folder("/incoming")
try:
    os.remove("/update_id")  # the files then come from no bundle
except OSError:
    pass
make("/staged")
for _folder in folders:
    make(_folder)
for _path in foreign:
    keep(_path)
