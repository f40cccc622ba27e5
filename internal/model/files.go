//go:build !js

package model

import "embed"

// files are the models of all devices.
//
//go:embed *.json
var files embed.FS
