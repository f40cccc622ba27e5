// Package all registers every backend of this build.
package all
