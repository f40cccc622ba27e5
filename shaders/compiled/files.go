//go:build !js

package compiled

import "embed"

//go:embed */*.gz
var files embed.FS
