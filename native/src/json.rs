//! JSON text, read strictly: what the engine would read in a way of its own is refused.

/// Why a chunk is left to the SQL path; the number is what the caller gets, with a minus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not UTF-8, or not JSON as the standard has it.
    Grammar = 1,
    /// A key twice, in escapes, or of a place where it means something else.
    Key = 2,
    /// A field of an event that is missing or of another type.
    Field = 3,
    /// An argument that does not fit its column as it stands.
    Argument = 4,
    /// A time that is missing, beyond its limits, or written in another way.
    Time = 5,
    /// More than the columns are to hold.
    Size = 6,
    /// A fault of this library, not of the text.
    Panic = 7,
}

/// What was read, or why not.
pub type Read<T> = Result<T, Refusal>;

/// Deeper values are left to the engine.
const MAX_DEPTH: u32 = 64;
/// Longer numbers likewise: integers fit 64 bits, and no fraction has gone through anything.
const MAX_INTEGER_DIGITS: usize = 18;
const MAX_NUMBER_BYTES: usize = 40;

/// A string between its quotes, as it stands in the text.
#[derive(Clone, Copy, Default)]
pub struct Text {
    /// Where it starts, behind the quote.
    pub start: usize,
    /// Where it ends: at the other quote.
    pub end: usize,
    /// It has backslashes.
    pub is_escaped: bool,
}

/// A place in a text. Behind the end stand NULs, which nothing accepts.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    /// The text.
    pub text: &'a [u8],
    /// The place.
    pub at: usize,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Mark the bytes that are zero; only the lowest mark is to be believed.
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH
}

/// Mark the bytes that end a string or need a look: quotes, backslashes, control characters.
fn specials(word: u64) -> u64 {
    zeros(word ^ (ONES * b'"' as u64)) | zeros(word ^ (ONES * b'\\' as u64)) | (word.wrapping_sub(ONES * 0x20) & !word & HIGH)
}

impl<'a> Cursor<'a> {
    /// The byte at this place.
    #[inline(always)]
    pub fn byte(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// The text from this place on.
    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or(&[])
    }

    /// Pass white space.
    #[inline(always)]
    pub fn skip_space(&mut self) {
        if self.byte() <= b' ' {
            self.skip_spaces();
        }
    }

    fn skip_spaces(&mut self) {
        const SPACES: u64 = ONES * b' ' as u64;
        loop {
            while matches!(self.rest().first_chunk(), Some(word) if u64::from_le_bytes(*word) == SPACES) {
                self.at += 8;
            }
            if !matches!(self.byte(), b' ' | b'\n' | b'\r' | b'\t') {
                return;
            }
            self.at += 1;
        }
    }

    /// Pass one byte and white space on both sides of it.
    #[inline(always)]
    pub fn pass(&mut self, byte: u8) -> Read<()> {
        self.skip_space();
        if self.byte() != byte {
            return Err(Refusal::Grammar);
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    /// Pass a comma, or the end of a list: whether more follows.
    #[inline(always)]
    pub fn goes_on(&mut self, end: u8) -> Read<bool> {
        self.skip_space();
        let found = self.byte();
        self.at += 1;
        if found == b',' {
            self.skip_space();
            return Ok(true);
        }
        if found == end {
            Ok(false)
        } else {
            Err(Refusal::Grammar)
        }
    }

    /// Pass a string; its escapes are yet to be looked at.
    #[inline(always)]
    pub fn string(&mut self) -> Read<Text> {
        if self.byte() != b'"' {
            return Err(Refusal::Grammar);
        }
        let start = self.at + 1;
        let mut is_escaped = false;
        self.at = start;
        loop {
            while let Some(word) = self.rest().first_chunk() {
                let marks = specials(u64::from_le_bytes(*word));
                if marks != 0 {
                    self.at += (marks.trailing_zeros() / 8) as usize;
                    break;
                }
                self.at += 8;
            }
            match self.byte() {
                b'"' => {
                    self.at += 1;
                    return Ok(Text { start, end: self.at - 1, is_escaped });
                }
                b'\\' => {
                    is_escaped = true;
                    self.at += 2;
                }
                0..=0x1f => return Err(Refusal::Grammar),
                _ => self.at += 1, // among the last seven bytes
            }
        }
    }

    /// Pass a number; whether it is whole.
    #[inline(always)]
    pub fn number(&mut self) -> Read<bool> {
        let start = self.at;
        let is_negative = self.byte() == b'-';
        self.at += usize::from(is_negative);
        let first = self.at;
        self.digits()?;
        if self.text[first] == b'0' && self.at - first > 1 {
            return Err(Refusal::Grammar);
        }
        let mut is_whole = true;
        if self.byte() == b'.' {
            is_whole = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), b'e' | b'E') {
            is_whole = false;
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), b'+' | b'-'));
            self.digits()?;
        }
        let is_odd = is_whole && (self.at - first > MAX_INTEGER_DIGITS || is_negative && self.text[first] == b'0');
        if is_odd || self.at - start > MAX_NUMBER_BYTES {
            return Err(Refusal::Argument);
        }
        Ok(is_whole)
    }

    #[inline(always)]
    fn digits(&mut self) -> Read<()> {
        let start = self.at;
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
        if self.at == start {
            Err(Refusal::Grammar)
        } else {
            Ok(())
        }
    }

    /// Pass a whole number; also one that is text.
    #[inline(always)]
    pub fn integer(&mut self) -> Read<i64> {
        if self.byte() == b'"' {
            let text = self.string()?;
            let mut inside = Cursor { text: &self.text[..text.end], at: text.start };
            let value = inside.integer_of_digits()?;
            return if inside.at == text.end { Ok(value) } else { Err(Refusal::Argument) };
        }
        self.integer_of_digits()
    }

    #[inline(always)]
    fn integer_of_digits(&mut self) -> Read<i64> {
        let start = self.at;
        if !self.number()? {
            return Err(Refusal::Argument);
        }
        let digits = &self.text[start..self.at];
        let (sign, digits) = if digits[0] == b'-' { (-1, &digits[1..]) } else { (1, digits) };
        Ok(sign * digits.iter().fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0')))
    }

    /// Pass microseconds: nanoseconds, half rounded away from zero.
    ///
    /// `limit_us` is the first that is too large.
    #[inline(always)]
    pub fn microseconds(&mut self, limit_us: i64) -> Read<i64> {
        let is_negative = self.byte() == b'-';
        self.at += usize::from(is_negative);
        let first = self.at;
        let mut whole = 0_i64;
        while self.byte().is_ascii_digit() && self.at - first < 17 {
            whole = whole * 10 + i64::from(self.byte() - b'0');
            self.at += 1;
        }
        if self.at == first || whole >= limit_us || self.text[first] == b'0' && self.at - first > 1 {
            return Err(Refusal::Time);
        }
        let mut nanoseconds = whole * 1000;
        if self.byte() == b'.' {
            self.at += 1;
            let start = self.at;
            self.digits()?;
            let fraction = &self.text[start..self.at];
            if fraction.len() > 17 {
                return Err(Refusal::Time);
            }
            for (digit, scale) in fraction.iter().zip([100, 10, 1]) {
                nanoseconds += scale * i64::from(digit - b'0');
            }
            nanoseconds += i64::from(fraction.get(3).is_some_and(|digit| *digit >= b'5'));
        }
        let is_odd = matches!(self.byte(), b'e' | b'E' | b'0'..=b'9');
        if is_odd || nanoseconds >= limit_us * 1000 {
            return Err(Refusal::Time);
        }
        Ok(if is_negative { -nanoseconds } else { nanoseconds })
    }

    /// Pass any value; what it is as JSON without white space goes to `out`.
    pub fn value(&mut self, out: &mut Vec<u8>) -> Read<()> {
        self.nested(out, 0, false)
    }

    /// Likewise one whose only numbers are whole ones, and without objects.
    pub fn plain_value(&mut self, out: &mut Vec<u8>) -> Read<()> {
        self.nested(out, 0, true)
    }

    fn nested(&mut self, out: &mut Vec<u8>, depth: u32, is_plain: bool) -> Read<()> {
        let start = self.at;
        match self.byte() {
            b'"' => return self.quoted(out),
            b'{' if is_plain => return Err(Refusal::Argument),
            b'{' | b'[' if depth == MAX_DEPTH => return Err(Refusal::Size),
            opening @ (b'{' | b'[') => {
                let end = opening + 2; // of both kinds
                out.push(opening);
                self.at += 1;
                self.skip_space();
                let mut more = self.byte() != end;
                self.at += usize::from(!more);
                while more {
                    if opening == b'{' {
                        self.quoted(out)?;
                        self.pass(b':')?;
                        out.push(b':');
                    }
                    self.nested(out, depth + 1, is_plain)?;
                    more = self.goes_on(end)?;
                    if more {
                        out.push(b',');
                    }
                }
                out.push(end);
                return Ok(());
            }
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            _ => {
                if !self.number()? && is_plain {
                    return Err(Refusal::Argument);
                }
            }
        }
        out.extend_from_slice(&self.text[start..self.at]);
        Ok(())
    }

    /// Pass a list of whole numbers, or of such lists, so many levels of them; as JSON without white space.
    pub fn sizes(&mut self, out: &mut Vec<u8>, levels: u32, digits: usize) -> Read<()> {
        self.list(out, |inside, out| {
            if inside.byte() == b'[' && levels > 1 {
                return inside.sizes(out, levels - 1, digits);
            }
            let start = inside.at;
            // The outermost of several levels has lists alone.
            if levels == 3 || inside.byte() == b'-' || !inside.number()? || inside.at - start > digits {
                return Err(Refusal::Argument);
            }
            out.extend_from_slice(&inside.text[start..inside.at]);
            Ok(())
        })
    }

    /// Pass a list of texts without escapes; as JSON without white space.
    pub fn names(&mut self, out: &mut Vec<u8>) -> Read<()> {
        self.list(out, |inside, out| {
            let text = inside.string()?;
            if text.is_escaped {
                return Err(Refusal::Argument);
            }
            out.extend_from_slice(&inside.text[text.start - 1..text.end + 1]);
            Ok(())
        })
    }

    /// Pass a list, its items by a function; as JSON without white space.
    #[inline(always)]
    fn list(&mut self, out: &mut Vec<u8>, item: impl Fn(&mut Self, &mut Vec<u8>) -> Read<()>) -> Read<()> {
        if self.byte() != b'[' {
            return Err(Refusal::Argument);
        }
        out.push(b'[');
        self.at += 1;
        self.skip_space();
        let mut more = self.byte() != b']';
        self.at += usize::from(!more);
        while more {
            item(self, out)?;
            more = self.goes_on(b']')?;
            if more {
                out.push(b',');
            }
        }
        out.push(b']');
        Ok(())
    }

    /// Pass a word.
    pub fn word(&mut self, word: &[u8]) -> Read<()> {
        if !self.rest().starts_with(word) {
            return Err(Refusal::Grammar);
        }
        self.at += word.len();
        Ok(())
    }

    fn quoted(&mut self, out: &mut Vec<u8>) -> Read<()> {
        let text = self.string()?;
        if !text.is_escaped {
            out.extend_from_slice(&self.text[text.start - 1..text.end + 1]);
            return Ok(());
        }
        let mut plain = Vec::with_capacity(text.end - text.start);
        self.unescape(text, &mut plain)?;
        out.push(b'"');
        for byte in plain {
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                0x08 => out.extend_from_slice(b"\\b"),
                0x0c => out.extend_from_slice(b"\\f"),
                0..=0x1f => return Err(Refusal::Grammar),
                _ => out.push(byte),
            }
        }
        out.push(b'"');
        Ok(())
    }

    /// Add what a string says.
    #[inline(always)]
    pub fn unescape(&self, text: Text, out: &mut Vec<u8>) -> Read<()> {
        let raw = &self.text[text.start..text.end];
        if !text.is_escaped {
            out.extend_from_slice(raw);
            return Ok(());
        }
        unescape(raw, out)
    }
}

fn unescape(raw: &[u8], out: &mut Vec<u8>) -> Read<()> {
    let mut rest = raw;
    while let Some(place) = rest.iter().position(|byte| *byte == b'\\') {
        out.extend_from_slice(&rest[..place]);
        let kind = *rest.get(place + 1).ok_or(Refusal::Grammar)?;
        rest = &rest[place + 2..];
        match kind {
            b'"' | b'\\' | b'/' => out.push(kind),
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'u' => {
                let mut code = hex(rest)?;
                rest = &rest[4..];
                if (0xd800..0xdc00).contains(&code) && rest.starts_with(b"\\u") {
                    let low = hex(&rest[2..])?;
                    rest = &rest[6..];
                    if !(0xdc00..0xe000).contains(&low) {
                        return Err(Refusal::Grammar);
                    }
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                }
                // Half of a pair is no character, and a NUL ends texts elsewhere.
                let character = char::from_u32(code).filter(|c| *c != '\0').ok_or(Refusal::Grammar)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => return Err(Refusal::Grammar),
        }
    }
    out.extend_from_slice(rest);
    Ok(())
}

fn hex(text: &[u8]) -> Read<u32> {
    let digits = text.get(..4).ok_or(Refusal::Grammar)?;
    digits.iter().try_fold(0, |value, digit| {
        let digit = (*digit as char).to_digit(16).ok_or(Refusal::Grammar)?;
        Ok(value * 16 + digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Cursor<'_> {
        Cursor { text: text.as_bytes(), at: 0 }
    }

    fn read<T>(text: &str, how: impl FnOnce(&mut Cursor) -> Read<T>) -> Result<(T, usize), Refusal> {
        let mut cursor = at(text);
        how(&mut cursor).map(|value| (value, cursor.at))
    }

    #[test]
    fn strings_end_at_their_quote() {
        for (text, end, is_escaped) in [
            (r#""""#, 1, false),
            (r#""a""#, 2, false),
            (r#""exactly8""#, 9, false),
            (r#""a\"b""#, 5, true),
            (r#""\\""#, 3, true),
            ("\"é – ▸ 字\"", 15, false),
        ] {
            let (found, behind) = read(text, |c| c.string()).unwrap();
            assert_eq!((found.start, found.end, found.is_escaped, behind), (1, end, is_escaped, end + 1), "{text}");
        }
    }

    #[test]
    fn strings_without_an_end_are_refused() {
        for text in ["", "a", "\"", "\"a", "\"a\\", "\"a\\\"", "\"tab\there\"", "\"line\nhere\"", "\"seven77"] {
            assert_eq!(read(text, |c| c.string()).err(), Some(Refusal::Grammar), "{text:?}");
        }
    }

    #[test]
    fn numbers_are_those_of_the_standard() {
        for (text, is_whole) in [("0", true), ("-7", true), ("10", true), ("0.5", false), ("1e3", false), ("-1.5E-3", false)] {
            assert_eq!(read(text, |c| c.number()), Ok((is_whole, text.len())), "{text}");
        }
        for text in ["", "-", "01", "00", "1.", ".5", "1e", "1e+", "+1", "abc"] {
            assert_eq!(read(text, |c| c.number()).err(), Some(Refusal::Grammar), "{text:?}");
        }
        for text in ["-0", "1234567890123456789", &"1".repeat(400), &format!("0.{}", "1".repeat(40))] {
            assert_eq!(read(text, |c| c.number()).err(), Some(Refusal::Argument), "{text:?}");
        }
    }

    #[test]
    fn integers_may_be_text() {
        assert_eq!(read("\"42\",", |c| c.integer()), Ok((42, 4)));
        assert_eq!(read("-42", |c| c.integer()), Ok((-42, 3)));
        for text in ["1.5", "\"4x\"", "\"\"", "\" 4\"", "1e3"] {
            assert!(read(text, |c| c.integer()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn microseconds_become_nanoseconds() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("12", 12_000),
            ("1.5", 1_500),
            ("1.001", 1_001),
            ("1.0004", 1_000),
            ("1.0005", 1_001),
            ("-1.0005", -1_001),
            ("1743406976912802.812", 1_743_406_976_912_802_812),
        ] {
            assert_eq!(read(text, |c| c.microseconds(1 << 52)), Ok((nanoseconds, text.len())), "{text}");
        }
        for text in ["", "-", "1.", "01", "1e3", "1.5e3", &"9".repeat(18), "9007199254740993", &format!("1.{}", "0".repeat(18))] {
            assert!(read(text, |c| c.microseconds(1 << 52)).is_err(), "{text:?}");
        }
    }

    #[test]
    fn values_lose_their_white_space_only() {
        let mut out = Vec::new();
        let text = "{ \"a\" : [ 1 , 2.50 , null , true ] , \"b c\" : { } } ,";
        at(text).value(&mut out).unwrap();
        assert_eq!(std::str::from_utf8(&out).unwrap(), "{\"a\":[1,2.50,null,true],\"b c\":{}}");
    }

    #[test]
    fn depth_is_limited() {
        for (depth, is_read) in [(10, true), (60, true), (100, false), (1_000_000, false)] {
            let text = "[".repeat(depth) + &"]".repeat(depth);
            assert_eq!(at(&text).value(&mut Vec::new()).is_ok(), is_read, "{depth}");
        }
    }

    #[test]
    fn escapes_become_what_they_stand_for() {
        for (text, plain) in [(r#""a\n\t\"\\\/""#, "a\n\t\"\\/"), (r#""\u00e9""#, "é"), (r#""\ud83d\ude00""#, "😀")] {
            let mut cursor = at(text);
            let found = cursor.string().unwrap();
            let mut out = Vec::new();
            cursor.unescape(found, &mut out).unwrap();
            assert_eq!(std::str::from_utf8(&out).unwrap(), plain);
        }
        for text in [r#""\x""#, r#""\u12""#, r#""\ud83d""#, r#""\ude00""#, r#""\ud83d\u0041""#] {
            let mut cursor = at(text);
            let found = cursor.string().unwrap();
            assert!(cursor.unescape(found, &mut Vec::new()).is_err(), "{text}");
        }
    }
}
