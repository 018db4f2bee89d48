package app

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// Confirmed asks a question. The answers y and yes are yes, and the end of ctx is no.
func (a *App) Confirmed(ctx context.Context, question string) bool {
	fmt.Fprint(a.Stdout, question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.Stdin).ReadString('\n') // nothing is no
		answer <- line
	}()
	select {
	case line := <-answer:
		answer := strings.ToLower(strings.TrimSpace(line))
		return answer == "y" || answer == "yes"
	case <-ctx.Done():
		return false
	}
}
