"""Runs first after every reset."""

import update

update.boot()
