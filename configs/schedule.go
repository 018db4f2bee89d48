package configs

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// cronFields are the fields of an expression, in their order.
var cronFields = []string{"minute", "hour", "day", "month", "weekday"}

// descriptors are the words that stand for an expression.
var descriptors = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

// schedule decodes a cron expression. The builder has the same parser. One that
// is wrong never asks for a build, which daemons have lived with.
func schedule(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		if why := scheduleFault(*out); why != "" {
			v.report(refused, "%s; it never asks for a build", why)
		}
	}
}

// scheduleFault says what is wrong with an expression, "" when nothing is.
func scheduleFault(text string) string {
	fields := strings.Fields(text)
	switch {
	case text == "":
		return ""
	case strings.Contains(text, "="):
		return "the time zone belongs into rebuild-timezone"
	case strings.HasPrefix(text, "@"):
		if _, err := cron.ParseStandard(text); err != nil {
			return fmt.Sprintf("%q is no time%s", text, didYouMean(text, descriptors))
		}
		return ""
	case len(fields) != len(cronFields):
		return fmt.Sprintf("expected five fields of cron (minute hour day month weekday) or @daily, got %q", text)
	}
	for i, name := range cronFields {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = fields[i]
		if _, err := cron.ParseStandard(strings.Join(alone, " ")); err != nil {
			return fmt.Sprintf("the %s %q is wrong: %v", name, fields[i], err)
		}
	}
	plan, err := cron.ParseStandard(text)
	if err != nil {
		return err.Error()
	}
	// A year with a 29 February, and all weekdays of it soon after.
	if plan.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return fmt.Sprintf("there is no such day in a year: %q", text)
	}
	return ""
}
