// Command mutants breaks the product on purpose, one small change after the other, and tells which changes no
// test notices.
//
//	mutants [-shard I/N | -shard auto/N] [-for 4m] [-floor 90] [-at FILE:LINE,...] [PACKAGE...]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	shard := flag.String("shard", "1/1", "the I-th of N parts of the mutants, or auto/N: another one each hour")
	limit := flag.Duration("for", 0, "begin no mutant after so long")
	floor := flag.Float64("floor", 0, "fail where fewer mutants are killed, in percent")
	at := flag.String("at", "", "only the mutants of these lines, as lock.go:12,lock.go:34")
	jobs := flag.Int("jobs", 1, "mutants at once")
	flag.Parse()
	r := &round{jobs: *jobs, at: lines(*at), began: time.Now(), limit: *limit}
	err := r.choose(ctx, *shard, flag.Args(), time.Now())
	if err == nil {
		err = r.run(ctx)
	}
	if err == nil {
		err = r.judge(*floor)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}
