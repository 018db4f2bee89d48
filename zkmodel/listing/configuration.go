package listing

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"poolkeeper/configs/effective"
)

// Configuration lists the values of a configuration, each with where it comes from.
func Configuration(rows []effective.Row) *Table {
	t := &Table{kind: "configuration", columns: []column{
		{title: "Key", key: "path"},
		{title: "Value", key: "value"},
		{title: "From", key: "origin"},
		{key: "secret"},
		{key: "default"},
	}}
	for _, row := range rows {
		t.rows = append(t.rows, []cell{
			{text: oneLine(row.Path), value: row.Path},
			{text: settingText(row.Value), value: row.Value},
			{text: oneLine(row.Origin.String()), value: row.Origin},
			{text: strconv.FormatBool(row.Secret), value: row.Secret},
			{text: strconv.FormatBool(row.Default), value: row.Default},
		})
	}
	return t
}

// settingText is a value for people, in one line.
func settingText(value any) string {
	switch one := value.(type) {
	case string:
		if one == "" {
			return `""`
		}
		return oneLine(one)
	case int, int64, bool, float64:
		return fmt.Sprint(one)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return Visible(fmt.Sprint(value))
	}
	return string(text)
}

// oneLine is text for people that stays within its cell: what moves a cursor or ends a line is quoted.
func oneLine(text string) string {
	if Visible(text) == text && !strings.Contains(text, "\n") {
		return text
	}
	return strconv.Quote(text)
}
