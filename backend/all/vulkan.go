// The backend vulkan; a stub without cgo.

package all

import _ "github.com/spmmrun/spmm/backend/vulkan"
