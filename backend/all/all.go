// Package all registers every backend of this build.
package all

import (
	_ "github.com/spmmrun/spmm/backend/vulkan" // registers "vulkan"
	_ "github.com/spmmrun/spmm/portable/cpu"   // registers "cpu"
)
