# Runs on the board and here: keep a run of flash blocks away from littlefs for good.
#
# Stock firmware for the RP2 mounts the whole storage area as littlefs and formats it
# when the sizes differ, so an area beside the filesystem cannot be had.  But a file
# of exactly one block carries no pointers: littlefs counts its block as used and
# reads it only when the file is read.  So one-block files in /journal own a run of
# blocks, and the journal writes these blocks directly.  /journal/place says where.
FOLDER = "/journal"
PLACE = FOLDER + "/place"
BLOCK = 4096


def reserve(files, count, first=None):
    """Own `count` adjacent blocks, from block `first` on if given -> the first block.

    `files` has mkdir(path), write(path, data), remove(path) and find(tag), which is
    the number of the block that begins with `tag`, or None.
    """
    files.mkdir(FOLDER)
    if first is not None:
        # littlefs takes free blocks in turn, so it gets to this one.
        while _land(files, FOLDER + "/probe") != first - 1:
            files.remove(FOLDER + "/probe")
        files.remove(FOLDER + "/probe")
    blocks = []
    while len(blocks) < count:
        block = _land(files, _name(len(blocks)))
        if blocks and block != blocks[-1] + 1:
            # The blocks are not consecutive: start again behind the gap.
            for i in range(len(blocks) + 1):
                files.remove(_name(i))
            blocks = []
        else:
            blocks.append(block)
    files.write(PLACE, b"%d %d\n" % (blocks[0] * BLOCK, count * BLOCK))
    return blocks[0]


def _name(i):
    return "%s/%02d" % (FOLDER, i)


_landings = 0


def _land(files, path):
    # -> where littlefs puts one more block, found by its content, which no other has.
    global _landings
    _landings += 1
    tag = b"umqtt31 keeps this block %08d" % _landings
    files.write(path, tag + b"\x00" * (BLOCK - len(tag)))
    return files.find(tag)
