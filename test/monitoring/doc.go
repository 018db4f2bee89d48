// Package monitoring holds the rules, runbook and samples of docs/monitoring together.
package monitoring
