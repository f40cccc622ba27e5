// Package devtools starts a Chromium without a window and drives it through a pipe, by the Chrome DevTools Protocol
// (https://chromedevtools.github.io/devtools-protocol/).
package devtools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// answerTime is how long a browser may take to answer a command.
const answerTime = time.Minute

// Browser is a running browser.
type Browser struct {
	cmd     *exec.Cmd
	profile string
	to      *os.File // is kept: the browser ends when the pipe does
	ended   chan struct{}

	mu      sync.Mutex
	last    int
	replies map[int]chan message
	pages   map[string]*Page
}

// Page is a tab.
type Page struct {
	b       *Browser
	session string
	events  func(method string, params json.RawMessage)
	ended   <-chan struct{}
}

type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a browser: a program and its first arguments, to which flags are added. It ends with the context, or by
// Close.
func Start(ctx context.Context, command ...string) (*Browser, error) {
	profile, err := os.MkdirTemp("", "browser-profile-")
	if err != nil {
		return nil, err
	}
	commands, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, answers, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	flags := append(command[1:len(command):len(command)], "--remote-debugging-pipe", "--user-data-dir="+profile,
		"--no-first-run",
		"--disable-dev-shm-usage", "--disable-background-timer-throttling", "--disable-renderer-backgrounding")
	b := &Browser{cmd: exec.CommandContext(ctx, command[0], flags...), profile: profile, to: to,
		ended:   make(chan struct{}),
		replies: map[int]chan message{}, pages: map[string]*Page{}}
	b.cmd.ExtraFiles = []*os.File{commands, answers} // 3 and 4
	ownGroup(b.cmd)
	said := &tail{}
	b.cmd.Stderr = said
	err = b.cmd.Start()
	commands.Close()
	answers.Close()
	if err != nil {
		to.Close()
		from.Close()
		return nil, errors.Join(err, os.RemoveAll(profile))
	}
	go b.read(from)
	if err := b.call("", "Browser.getVersion", nil, nil); err != nil {
		b.Close()
		return nil, &StartError{Status: b.cmd.ProcessState.ExitCode(), Said: string(said.text), Err: err}
	}
	return b, nil
}

// StartError says why no browser came up.
type StartError struct {
	Status int    // that the program ended with
	Said   string // the end of what it wrote to stderr
	Err    error
}

func (e *StartError) Error() string { return fmt.Sprintf("starting a browser: %v: %s", e.Err, e.Said) }

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-2000):]
	return len(p), nil
}

// read hands on what the browser says, until it ends.
func (b *Browser) read(from io.ReadCloser) {
	defer close(b.ended)
	defer from.Close()
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		reply, page := b.replies[m.ID], b.pages[m.SessionID]
		b.mu.Unlock()
		switch {
		case m.ID != 0 && reply != nil:
			reply <- m
		case m.ID == 0 && page != nil:
			page.events(m.Method, m.Params)
		}
	}
}

// call sends a command and waits for its answer.
func (b *Browser) call(session, method string, params, result any) error {
	reply := make(chan message, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.replies[id] = reply
	text, err := json.Marshal(struct {
		ID        int    `json:"id"`
		SessionID string `json:"sessionId,omitempty"`
		Method    string `json:"method"`
		Params    any    `json:"params,omitempty"`
	}{id, session, method, params})
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.replies, id)
		b.mu.Unlock()
	}()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m := <-reply:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			return json.Unmarshal(m.Result, result)
		}
		return nil
	case <-b.ended:
		return fmt.Errorf("%s: the browser ended", method)
	case <-time.After(answerTime):
		return fmt.Errorf("%s: no answer within %v", method, answerTime)
	}
}

// Open makes an empty tab. events is called with each event of it, one after another, and must not call the page.
func (b *Browser) Open(events func(method string, params json.RawMessage)) (*Page, error) {
	var t struct{ TargetID, SessionID string }
	if err := b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &t); err != nil {
		return nil, err
	}
	if err := b.call("", "Target.attachToTarget", map[string]any{"targetId": t.TargetID, "flatten": true},
		&t); err != nil {
		return nil, err
	}
	p := &Page{b, t.SessionID, events, b.ended}
	b.mu.Lock()
	b.pages[t.SessionID] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Inspector"} {
		if err := p.Call(domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Call sends a command of the protocol about the page; result may be nil.
func (p *Page) Call(method string, params map[string]any, result any) error {
	return p.b.call(p.session, method, params, result)
}

// Ended is closed when the browser has ended.
func (p *Page) Ended() <-chan struct{} { return p.ended }

// Eval evaluates JavaScript, waits if the value is a promise, and stores the value as JSON has it; result may be nil.
func (p *Page) Eval(expression string, result any) error {
	var r struct {
		Result struct {
			Value json.RawMessage
		}
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := p.Call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true,
		"userGesture": true}, &r)
	if err != nil {
		return err
	}
	if e := r.ExceptionDetails; e != nil {
		return fmt.Errorf("%.80s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if result == nil || r.Result.Value == nil {
		return nil
	}
	return json.Unmarshal(r.Result.Value, result)
}

// Close ends the browser and removes its profile.
func (b *Browser) Close() error {
	select {
	case <-b.ended:
	default:
		b.mu.Lock()
		b.to.Write([]byte(`{"id":-1,"method":"Browser.close"}` + "\x00"))
		b.mu.Unlock()
		select {
		case <-b.ended:
		case <-time.After(10 * time.Second):
		}
	}
	kill(b.cmd)
	b.cmd.Wait() // that it was killed is no news
	b.to.Close()
	<-b.ended
	return os.RemoveAll(b.profile)
}
