//go:build js

// What a browser is called.

package webgpu

import (
	"regexp"
	"slices"
	"strings"
)

var products = regexp.MustCompile(`(Firefox|Edg|OPR|HeadlessChrome|Chrome|Version)/([0-9.]+)`)

// systems are in this order since Android also calls itself Linux, and an iPhone Mac OS X.
var systems = []string{"Android", "iPhone", "iPad", "CrOS", "Windows", "Mac OS X", "Linux"}

// browserName is the browser and its system by a user agent's text, as "Chrome 150.0 on Linux".
func browserName(agent string) string {
	best := []string{"", "browser", ""}
	for _, m := range products.FindAllStringSubmatch(agent, -1) {
		switch m[1] { // the others also call themselves Chrome
		case "Version":
			m[1] = "Safari"
		case "Edg":
			m[1] = "Edge"
		case "OPR":
			m[1] = "Opera"
		}
		if best[0] == "" || m[1] == "Edge" || m[1] == "Opera" {
			best = m
		}
	}
	system := "an unknown system"
	if i := slices.IndexFunc(systems, func(s string) bool { return strings.Contains(agent, s) }); i >= 0 {
		system = systems[i]
	}
	return strings.Join(strings.Fields(best[1]+" "+best[2]+" on "+system), " ")
}
