// Package pages reads what README.md and docs/ show, so that tests can run it.
package pages

import (
	"fmt"
	"os"
	"strings"
)

// Block is one fenced block of a page.
type Block struct {
	Page string // as it was given to Read
	Line int    // of the page, of its first line of text
	Lang string // what stands behind the fence; may be ""
	Text string
}

// Command is a line that a page tells people to type.
type Command struct {
	Page string
	Line int
	Root bool   // its prompt is root's
	Text string // with its comment, which the shell passes over
}

// String is where it stands, and what it is.
func (c Command) String() string { return fmt.Sprintf("%s:%d: %s", c.Page, c.Line, c.Text) }

// Read returns the fenced blocks of a page.
func Read(page string) ([]Block, error) {
	text, err := os.ReadFile(page) //nolint:gosec // a page of ours
	if err != nil {
		return nil, fmt.Errorf("read page: %w", err)
	}
	var blocks []Block
	inside := false
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && !inside:
			blocks = append(blocks, Block{Page: page, Line: number + 1, Lang: strings.TrimSpace(fence)})
			inside = true
		case isFence:
			inside = false
		case inside:
			blocks[len(blocks)-1].Text += line
		}
	}
	if inside {
		return nil, fmt.Errorf("read page: %s: the last block has no end", page)
	}
	return blocks, nil
}

// Commands are the lines of a console block behind a prompt; what stands below them
// is what they print.
func (b Block) Commands() []Command {
	if b.Lang != "console" {
		return nil
	}
	var commands []Command
	number := b.Line
	for line := range strings.Lines(b.Text) {
		line = strings.TrimSuffix(line, "\n")
		user, isUser := strings.CutPrefix(line, "$ ")
		root, isRoot := strings.CutPrefix(line, "# ")
		switch {
		case isUser:
			commands = append(commands, Command{b.Page, number, false, user})
		case isRoot:
			commands = append(commands, Command{b.Page, number, true, root})
		}
		number++
	}
	return commands
}

// Bare is a command without its comment.
func (c Command) Bare() string {
	text, _, _ := strings.Cut(c.Text, " # ")
	return strings.TrimSpace(text)
}
