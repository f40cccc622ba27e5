package all

import _ "github.com/spmmrun/spmm/backend/vulkan" // any GPU with a Vulkan driver
