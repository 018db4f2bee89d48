// Package site simulates a whole site: launchers, requestors and clouds, in a world of faults.
package site
