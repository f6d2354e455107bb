"""What is given to others: a mip index, a ROMFS image, a folder to freeze, sdist and wheel."""
