package model

import "embed"

// files are the models of the devices that a browser has.
//
//go:embed cpu.json webgpu.json
var files embed.FS
