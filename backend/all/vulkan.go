package all

import _ "github.com/spmmrun/spmm/backend/vulkan"
