package compiled

import "embed"

var files embed.FS // empty
