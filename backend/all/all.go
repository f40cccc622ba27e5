// Package all registers every backend of this build, one file for each.
package all
