package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// table is aligned columns without borders. The last one may be long text.
type table struct {
	header []string
	rows   [][]string
}

// write prints the table. Where width is that of a terminal, the last column
// is shortened to fit; a pipe gets all of it.
func (t table) write(w io.Writer, width int) error {
	rows := make([][]string, 0, len(t.rows)+1)
	rows = append(rows, t.header)
	for _, row := range t.rows {
		plain := make([]string, len(row))
		for i, cell := range row {
			if plain[i] = plainText(cell); cell == "" {
				plain[i] = "-"
			}
		}
		rows = append(rows, plain)
	}
	widths := make([]int, len(t.header))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		writeRow(&b, row, widths, width)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeRow(b *strings.Builder, row []string, widths []int, width int) {
	used := 0
	for i, cell := range row {
		if i == len(row)-1 {
			b.WriteString(shorten(cell, width-used, width > 0))
			break
		}
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		used += widths[i] + 2
	}
	b.WriteByte('\n')
}

// shorten cuts text to the room there is, but never to nothing.
func shorten(s string, room int, must bool) string {
	const least = 10
	room = max(room, least)
	if !must || utf8.RuneCountInString(s) <= room {
		return s
	}
	return string([]rune(s)[:room-1]) + "…"
}
