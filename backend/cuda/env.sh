#!/bin/sh
# The old name of the command env in this folder.
cd "$(dirname -- "$0")/../.." && GOOS= GOARCH= exec go run ./backend/cuda/env "$@"
