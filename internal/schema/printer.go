package schema

import (
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// printer is the language of faults.
var printer = message.NewPrinter(language.English)
