// Package cache is the user's folder for what can be made again: pipelines that a driver compiled, rates measured on a
// device, device models, what tuning found.
//
// The folder is not trusted: it may be anybody's, and anything may lie there. Only regular files of bounded size are
// read that belong to the user, in folders that belong to the user, which nobody else may write to. Links are not
// followed but for that to the folder itself. Everything else counts as not being there.
package cache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	slashpath "path"
	"path/filepath"
	"sync"
	"time"
)

// ErrRefused says that a file in the folder must not be used.
var ErrRefused = errors.New("not used")

// Folder returns the folder, which may not exist yet: the one that SPMM_CACHE names, else the user's.
// "" if there is none.
func Folder() string {
	if dir := os.Getenv("SPMM_CACHE"); dir != "" {
		return dir
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(user, "spmm")
}

// Path returns where the file of a name lies; names use slashes. "" if there is no folder.
func Path(name string) string {
	dir := Folder()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}

// Read returns the file of a name of at most limit bytes. It never blocks. An error is fs.ErrNotExist where there is no
// such file, or ErrRefused, which was passed to OnRefused's function.
func Read(name string, limit int64) ([]byte, error) {
	if Folder() == "" {
		return nil, fs.ErrNotExist
	}
	b, err := read(name, limit)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, Refuse(name, err)
	}
	return b, err
}

func read(name string, limit int64) ([]byte, error) {
	if err := trustFolders(name); err != nil {
		return nil, err
	}
	path := Path(name)
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := trustFile(before, limit); err != nil { // before it is opened, which may have effects on a device
		return nil, err
	}
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := trustFile(info, limit); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return b, err
}

// trustFile refuses what is not a regular file of the user's of at most limit bytes.
func trustFile(info fs.FileInfo, limit int64) error {
	switch {
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	case info.Size() > limit:
		return fmt.Errorf("it has %d bytes, more than %d", info.Size(), limit)
	}
	return trustOwner(info)
}

// trustFolders refuses folders, from that of the cache to that of the file, that are not the user's alone.
func trustFolders(name string) error {
	top, err := os.Stat(Folder())
	if err != nil {
		return err
	}
	err = trustFolder(Folder(), top)
	for dir := slashpath.Dir(name); err == nil && dir != "."; dir = slashpath.Dir(dir) {
		var info fs.FileInfo
		if info, err = os.Lstat(Path(dir)); err == nil {
			err = trustFolder(Path(dir), info)
		}
	}
	return err
}

func trustFolder(path string, info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", path)
	}
	if err := trustOwner(info); err != nil {
		return fmt.Errorf("its folder: %w", err)
	}
	return nil
}

// mostNames bounds what Names returns.
const mostNames = 1 << 16

// Names returns the names of the files in a folder below the cache folder, in no order; none where it is not there or
// must not be used.
func Names(folder string) []string {
	dir := Path(folder)
	if dir == "" {
		return nil
	}
	if err := trustFolders(folder + "/file"); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			_ = Refuse(folder, err)
		}
		return nil
	}
	f, err := openPlain(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(mostNames) // what could be read
	return names
}

// Write leaves either the old file of a name or the whole new one, and makes the folders on the way. What a process
// that is killed meanwhile leaves behind, which is nothing where the system has files without a name, a later Write
// removes. It does nothing where there is no cache folder.
func Write(name string, data []byte) error {
	path := Path(name)
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := trustFolders(name); err != nil {
		return Refuse(name, err)
	}
	sweep(filepath.Dir(path))
	if done, err := writeNameless(path, data); done {
		return err
	}
	return writeAside(path, data)
}

// temporary is the prefix of unfinished files' names.
const temporary = ".new-"

// writeAside writes a temporary file in the folder of the one that it then replaces.
func writeAside(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), temporary+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// sweep removes unfinished files of processes that are long gone.
func sweep(dir string) {
	old, err := filepath.Glob(filepath.Join(dir, temporary+"*"))
	if err != nil {
		return
	}
	for _, path := range old {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > time.Hour {
			os.Remove(path)
		}
	}
}

var (
	reporting sync.Mutex
	report    func(error)
	reported  bool
)

// OnRefused has f called with the first thing in the folder that is refused, and with no other.
func OnRefused(f func(error)) {
	reporting.Lock()
	defer reporting.Unlock()
	report, reported = f, false
}

// Refuse is for a file whose contents cannot be right: it tells OnRefused's function and returns the error.
func Refuse(name string, why error) error {
	err := fmt.Errorf("%s in the cache folder is %w: %w", Path(name), ErrRefused, why)
	reporting.Lock()
	f := report
	if reported {
		f = nil
	}
	reported = reported || f != nil
	reporting.Unlock()
	if f != nil {
		f(err)
	}
	return err
}
