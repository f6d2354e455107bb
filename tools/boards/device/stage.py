# Runs on the board: an empty folder for an update, and the folders it will fill.
# `folders` is set by the sender, parents first.
import os


def make(folder):
    try:
        os.mkdir(folder)
    except OSError as error:
        if error.errno != 17:  # EEXIST
            raise


make("/staged")
# "ready" first: without it a half-emptied folder is no update.
for _name in sorted(os.listdir("/staged"), key=lambda name: name != "ready"):
    os.remove("/staged/" + _name)
for _folder in folders:
    make(_folder)
