//! Events into the columns of their tables, as the statements of sql/ingest do it.
//!
//! Those are the definition: whatever could come out otherwise here is refused, and the chunk that
//! it stands in leaves nothing behind.

use crate::columns::{Column, Kind};
use crate::json::{Cursor, Read, Refusal, Text};

/// Fields that a table may keep of an event, in the order of its columns.
pub const FIELDS: [&str; 12] = ["event_id", "ts", "dur", "pid", "tid", "name", "cat", "phase", "flow_id", "binding_point", "scope", "args"];
const ID: usize = 0;
const TS: usize = 1;
const DUR: usize = 2;
/// The first of those that are text.
const PID: usize = 3;
const NAME: usize = 5;
const CAT: usize = 6;
const PHASE: usize = 7;
const ARGS: usize = 11;

/// No later than 2065, so that the distance of any two times fits 64 bits; nothing lasts ten days.
const TS_LIMIT_US: i64 = 3_000_000_000_000_000;
const DUR_LIMIT_US: i64 = 900_000_000_000;
/// A counter beyond it has no double of its own.
const EXACT_DOUBLES: f64 = 9_007_199_254_740_992.0;
/// Ends of texts are 32 bits.
const MAX_COLUMN_BYTES: usize = 1 << 30;
/// Most arguments of a table, and most keys of an event whose places are remembered.
const MAX_KEYS: usize = 64;
const UNKNOWN: u8 = 255;

/// How an argument is read.
#[derive(Clone, Copy)]
enum Type {
    /// Whole, up to a limit on both sides.
    Integer(i64),
    /// Likewise, in 32 bits.
    Narrow,
    /// A number up to a limit on both sides.
    Double(f64),
    /// A text, or the JSON of anything else.
    Text,
    /// Three whole numbers up to a limit on both sides.
    Triple(i64),
    /// A list of the sizes of each input.
    Dims,
    /// A list of texts.
    Names,
    /// A list of anything.
    List,
    /// A list of whole numbers with so many digits at most, or its text; and its bytes at most.
    Numbers(usize, usize),
}

/// Digits of one size of an input, at most.
const SIZE_DIGITS: usize = 13;

struct Key {
    /// The name and the quote behind it.
    name: Vec<u8>,
    column: usize,
    kind: Type,
    /// Categories of whose events alone it is known, a bit each; none: of all.
    categories: u64,
}

/// A staged table.
pub struct Table {
    name: String,
    /// Columns: the fields, then the arguments.
    pub columns: Vec<Column>,
    keeps: [bool; FIELDS.len()],
    keys: Vec<Key>,
    /// Which key stood at each place of the last event's arguments.
    guesses: [u8; MAX_KEYS],
    /// Number of rows.
    pub rows: usize,
    /// Number of events, of which a counter has several rows.
    pub events: usize,
    is_typed: bool,
}

struct Category {
    name: Vec<u8>,
    is_suffix: bool,
    table: usize,
}

/// Where a table ends.
#[derive(Clone, Copy, Default)]
struct Mark {
    rows: usize,
    events: usize,
}

/// What is made of the chunks of a batch.
pub struct Reader {
    /// The staged tables, in the order in which they were named.
    pub tables: Vec<Table>,
    categories: Vec<Category>,
    flows: usize,
    memory: usize,
    counters: usize,
    other: usize,
    /// It could not take back a chunk that it refused, so what it holds is not to be used.
    pub is_broken: bool,
    /// For each chunk where each table ends behind it.
    ends: Vec<Vec<Mark>>,
    scratch: Vec<u8>,
}

/// A field as it stands in the text.
#[derive(Clone, Copy, Default)]
struct Field {
    text: Text,
    is_there: bool,
}

#[derive(Default)]
struct Event {
    /// The text fields, from the process id on.
    fields: [Field; ARGS],
    ts: Option<i64>,
    dur: Option<i64>,
    /// Where the arguments stand, and where the cursor is behind them.
    args: Option<usize>,
}

impl Reader {
    /// Make a reader of what [`crate::reader_new`] is told; None where that cannot be.
    pub fn new(plan: &str) -> Option<Self> {
        let mut tables: Vec<Table> = Vec::new();
        let mut categories = Vec::new();
        for line in plan.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            match words[..] {
                ["table", name, fields, is_typed] => tables.push(Table::new(name, fields, is_typed == "typed")),
                ["argument", name, column, kind, limit, mask] => {
                    let (column, mask) = (column.parse().ok()?, mask.parse().ok()?);
                    tables.last_mut()?.add_key(name, column, type_of(kind, limit.parse().ok()?)?, mask)?;
                }
                ["category", name, table] => categories.push(Category {
                    name: name.trim_start_matches('*').into(),
                    is_suffix: name.starts_with('*'),
                    table: tables.iter().position(|t| t.name == table)?,
                }),
                _ => return None,
            }
        }
        let place = |name: &str| tables.iter().position(|t| t.name == name);
        let (flows, memory) = (place("flows")?, place("memory_events")?);
        let (counters, other) = (place("counters")?, place("other_events")?);
        let is_sound = categories.len() <= 64 && tables[counters].columns.len() == FIELDS.len() + 2;
        let (ends, scratch) = (Vec::new(), Vec::new());
        is_sound.then_some(Self { tables, categories, flows, memory, counters, other, is_broken: false, ends, scratch })
    }

    /// Read a chunk; the number of its events. Where it is refused, [`Reader::cut`] is to follow.
    pub fn read(&mut self, text: &[u8]) -> Read<usize> {
        let count = self.events(text)?;
        self.ends.push(self.tables.iter().map(|t| Mark { rows: t.rows, events: t.events }).collect());
        Ok(count)
    }

    /// Take back all that was read behind the last whole chunk.
    pub fn cut(&mut self) {
        let start = vec![Mark::default(); self.tables.len()];
        let marks = self.ends.last().unwrap_or(&start);
        for (table, mark) in self.tables.iter_mut().zip(marks) {
            (table.rows, table.events) = (mark.rows, mark.events);
            table.columns.iter_mut().for_each(|column| column.cut(mark.rows));
        }
    }

    /// Add to the position of each event the id of the first of its chunk.
    pub fn number(&mut self, first_ids: &[i64]) -> bool {
        if first_ids.len() != self.ends.len() {
            return false;
        }
        for (place, table) in self.tables.iter_mut().enumerate() {
            let mut start = 0;
            for (ends, first) in self.ends.iter().zip(first_ids) {
                for id in &mut table.columns[ID].wide[start..ends[place].rows] {
                    *id += first;
                }
                start = ends[place].rows;
            }
        }
        true
    }

    /// Bytes of all columns, once each is filled up to the rows of its table.
    pub fn size(&self) -> usize {
        self.tables.iter().flat_map(|table| &table.columns).map(Column::size).sum()
    }

    fn events(&mut self, text: &[u8]) -> Read<usize> {
        if std::str::from_utf8(text).is_err() {
            return Err(Refusal::Grammar);
        }
        if self.tables.iter().flat_map(|t| &t.columns).any(|c| c.bytes.len() > MAX_COLUMN_BYTES - text.len()) {
            return Err(Refusal::Size);
        }
        let mut cursor = Cursor { text, at: 0 };
        cursor.skip_space();
        let mut count = 0;
        loop {
            self.event(&mut cursor, count)?;
            count += 1;
            cursor.skip_space();
            if cursor.at == text.len() {
                return Ok(count as usize);
            }
            cursor.pass(b',')?;
        }
    }

    fn event(&mut self, cursor: &mut Cursor, position: i64) -> Read<()> {
        let mut event = Event::default();
        let mut table = None;
        cursor.pass(b'{')?;
        loop {
            let key = cursor.string()?;
            cursor.pass(b':')?;
            if key.is_escaped {
                return Err(Refusal::Key);
            }
            match &cursor.text[key.start..key.end] {
                b"ph" => event.fields[PHASE].fill(cursor, false)?,
                b"cat" => event.fields[CAT].fill(cursor, false)?,
                b"name" => event.fields[NAME].fill(cursor, false)?,
                b"pid" => event.fields[PID].fill(cursor, true)?,
                b"tid" => event.fields[PID + 1].fill(cursor, true)?,
                b"id" => event.fields[8].fill(cursor, true)?,
                b"bp" => event.fields[9].fill(cursor, false)?,
                b"s" => event.fields[10].fill(cursor, false)?,
                b"ts" => once(&mut event.ts, cursor.microseconds(TS_LIMIT_US)?)?,
                b"dur" => once(&mut event.dur, cursor.microseconds(DUR_LIMIT_US)?)?,
                b"args" => {
                    once(&mut event.args, cursor.at)?;
                    // Kineto writes the arguments last, so that it is known what they are of. A
                    // counter has several rows, each with all of its fields.
                    let is_known = [PHASE, CAT, NAME].iter().all(|field| event.fields[*field].is_there);
                    if is_known && cursor.text[event.fields[PHASE].text.start] != b'C' {
                        table = Some(self.arguments(cursor, &event, position)?);
                    } else {
                        self.pass_value(cursor)?;
                    }
                }
                b"traceEvents" => return Err(Refusal::Key),
                _ => self.pass_value(cursor)?,
            }
            if !cursor.goes_on(b'}')? {
                break;
            }
        }
        let table = match (table, event.args) {
            (Some(table), _) => table,
            (None, Some(at)) => self.arguments(&mut Cursor { text: cursor.text, at }, &event, position)?,
            (None, None) => self.target(cursor.text, &event)?.0,
        };
        self.tables[table].add(cursor, &event, position)
    }

    fn pass_value(&mut self, cursor: &mut Cursor) -> Read<()> {
        self.scratch.clear();
        cursor.value(&mut self.scratch)
    }

    /// Read the arguments of an event into its table; returns that.
    fn arguments(&mut self, cursor: &mut Cursor, event: &Event, position: i64) -> Read<usize> {
        let (place, categories) = self.target(cursor.text, event)?;
        if cursor.byte() != b'{' {
            return Err(Refusal::Argument);
        }
        let table = &mut self.tables[place];
        let start = cursor.at;
        let is_held = if table.is_typed {
            self.scratch.clear();
            table.typed(cursor, categories, &mut self.scratch)?
        } else if place == self.counters {
            return table.counter(cursor, event, position).map(|()| place);
        } else {
            false
        };
        if !is_held {
            // As text, whole; the cursor ends where it is already, unless nothing was read yet.
            let column = &mut table.columns[ARGS];
            cursor.at = start;
            cursor.value(&mut column.bytes)?;
            column.end_text(table.rows);
        }
        Ok(place)
    }

    /// Say which table an event goes to, and which of the categories it has, as a bit.
    fn target(&self, text: &[u8], event: &Event) -> Read<(usize, u64)> {
        let said = |field: usize| &text[event.fields[field].text.start..event.fields[field].text.end];
        let [phase] = said(PHASE) else { return Err(Refusal::Field) };
        let name = &event.fields[NAME];
        let table = match phase {
            b'X' if event.fields[CAT].text.is_escaped => return Err(Refusal::Field),
            b'X' if event.fields[CAT].is_there => {
                let category = said(CAT);
                let of_category = |known: &Category| {
                    if known.is_suffix {
                        category.ends_with(&known.name)
                    } else {
                        category == known.name
                    }
                };
                match self.categories.iter().position(of_category) {
                    Some(found) => return Ok((self.categories[found].table, 1 << found)),
                    None => self.other,
                }
            }
            b's' | b't' | b'f' => self.flows,
            b'i' | b'I' if name.text.is_escaped => return Err(Refusal::Field),
            b'i' | b'I' if name.is_there && said(NAME) == b"[memory]" => self.memory,
            b'C' => self.counters,
            _ => self.other,
        };
        Ok((table, 0))
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Read<()> {
    // Of equal keys the engine takes one, and that is its business.
    if place.replace(value).is_some() {
        Err(Refusal::Key)
    } else {
        Ok(())
    }
}

fn type_of(kind: &str, limit: i64) -> Option<Type> {
    Some(match kind {
        "integer" => Type::Integer(limit),
        "narrow" => Type::Narrow,
        "double" => Type::Double(limit as f64),
        "text" => Type::Text,
        "triple" => Type::Triple(limit),
        "dims" => Type::Dims,
        "names" => Type::Names,
        "list" => Type::List,
        "ranks" => Type::Numbers(7, limit as usize),
        "splits" => Type::Numbers(12, limit as usize),
        _ => return None,
    })
}

impl Field {
    #[inline(always)]
    fn fill(&mut self, cursor: &mut Cursor, may_be_number: bool) -> Read<()> {
        if self.is_there {
            return Err(Refusal::Key);
        }
        self.is_there = true;
        if cursor.byte() == b'"' {
            self.text = cursor.string()?;
            return Ok(());
        }
        self.text.start = cursor.at;
        if !may_be_number || !cursor.number()? {
            return Err(Refusal::Field);
        }
        self.text.end = cursor.at;
        Ok(())
    }
}

impl Table {
    fn new(name: &str, fields: &str, is_typed: bool) -> Self {
        let keeps = FIELDS.map(|field| fields.split(' ').any(|kept| kept == field));
        let kind_of = |place| if place <= DUR { Kind::Wide } else { Kind::Text };
        Self {
            name: name.to_owned(),
            columns: (0..FIELDS.len()).map(|place| Column::new(kind_of(place))).collect(),
            keeps,
            keys: Vec::new(),
            guesses: [UNKNOWN; MAX_KEYS],
            rows: 0,
            events: 0,
            is_typed,
        }
    }

    fn add_key(&mut self, name: &str, column: usize, kind: Type, categories: u64) -> Option<()> {
        let column = FIELDS.len() + column;
        if column == self.columns.len() {
            self.columns.push(Column::new(match kind {
                Type::Integer(_) | Type::Double(_) => Kind::Wide,
                Type::Narrow => Kind::Narrow,
                Type::Triple(_) => Kind::List,
                Type::Text | Type::Dims | Type::Names | Type::List | Type::Numbers(..) => Kind::Text,
            }));
        }
        let is_sound = column < self.columns.len() && self.keys.len() < MAX_KEYS;
        self.keys.push(Key { name: format!("{name}\"").into_bytes(), column, kind, categories });
        is_sound.then_some(())
    }

    /// Read arguments into their columns: whether these say all that the arguments do.
    #[inline(always)]
    fn typed(&mut self, cursor: &mut Cursor, categories: u64, scratch: &mut Vec<u8>) -> Read<bool> {
        let mut is_held = true;
        let mut seen = 0_u64;
        let mut place = 0;
        cursor.pass(b'{')?;
        if cursor.byte() == b'}' {
            cursor.at += 1;
            return Ok(true);
        }
        loop {
            let found = self.key(cursor, place, categories)?;
            place += 1;
            cursor.pass(b':')?;
            let key = self.keys.get(found as usize);
            if let Some(key) = key {
                // Of equal keys the first counts, also where it is null.
                let bit = 1 << (key.column - FIELDS.len());
                if seen & bit != 0 {
                    return Err(Refusal::Key);
                }
                seen |= bit;
            }
            match key {
                Some(Key { column, kind, .. }) if cursor.byte() != b'n' => {
                    put(&mut self.columns[*column], cursor, *kind, self.rows)?;
                }
                _ => {
                    is_held = false;
                    scratch.clear();
                    cursor.value(scratch)?;
                }
            }
            if !cursor.goes_on(b'}')? {
                return Ok(is_held);
            }
        }
    }

    /// Pass a key: which of the known ones it is.
    #[inline(always)]
    fn key(&mut self, cursor: &mut Cursor, place: usize, categories: u64) -> Read<u8> {
        let is_of = |key: &Key| key.categories == 0 || key.categories & categories != 0;
        let guess = self.guesses.get(place).copied().unwrap_or(UNKNOWN);
        if let (Some(key), b'"') = (self.keys.get(guess as usize), cursor.byte()) {
            if cursor.text[cursor.at + 1..].starts_with(&key.name) && is_of(key) {
                cursor.at += 1 + key.name.len();
                return Ok(guess);
            }
        }
        let text = cursor.string()?;
        if text.is_escaped {
            return Err(Refusal::Key);
        }
        let name = &cursor.text[text.start..text.end + 1];
        let found = self.keys.iter().position(|key| key.name == name && is_of(key));
        let found = found.map_or(UNKNOWN, |found| found as u8);
        if let Some(guess) = self.guesses.get_mut(place) {
            *guess = found;
        }
        Ok(found)
    }

    /// Read the series of a counter, each into a row; that of the last is left to be added.
    fn counter(&mut self, cursor: &mut Cursor, event: &Event, position: i64) -> Read<()> {
        let start = cursor.at;
        let mut text = Vec::new();
        cursor.value(&mut text)?;
        let mut inside = Cursor { text: cursor.text, at: start };
        let mut seen: Vec<&[u8]> = Vec::new();
        inside.pass(b'{')?;
        let mut more = inside.byte() != b'}';
        while more {
            let key = inside.string()?;
            let name = &cursor.text[key.start..key.end];
            inside.pass(b':')?;
            let value = double(&mut inside)?;
            if key.is_escaped || seen.contains(&name) || seen.len() == MAX_KEYS || value.abs() > EXACT_DOUBLES {
                return Err(Refusal::Argument);
            }
            seen.push(name);
            self.columns[FIELDS.len()].put_text(self.rows, name);
            self.columns[FIELDS.len() + 1].put(self.rows, value.to_bits() as i64);
            more = inside.goes_on(b'}')?;
            if more {
                self.columns[ARGS].put_text(self.rows, &text);
                self.add(cursor, event, position)?;
                self.events -= 1;
            }
        }
        if self.columns.iter().any(|column| column.bytes.len() > MAX_COLUMN_BYTES / 8) {
            return Err(Refusal::Size);
        }
        self.columns[ARGS].put_text(self.rows, &text);
        Ok(())
    }

    /// Add the row of an event whose arguments are there.
    #[inline(always)]
    fn add(&mut self, cursor: &Cursor, event: &Event, position: i64) -> Read<()> {
        let phase = cursor.text[event.fields[PHASE].text.start];
        if event.ts.is_none() && phase != b'M' || event.dur.is_none() && phase == b'X' {
            return Err(Refusal::Time);
        }
        self.columns[ID].put(self.rows, position);
        if let Some(ts) = event.ts {
            self.columns[TS].put(self.rows, ts);
        }
        if let (Some(dur), true) = (event.dur, self.keeps[DUR]) {
            self.columns[DUR].put(self.rows, dur);
        }
        for place in PID..ARGS {
            let field = event.fields[place];
            if field.is_there && self.keeps[place] {
                let column = &mut self.columns[place];
                cursor.unescape(field.text, &mut column.bytes)?;
                column.end_text(self.rows);
            } else if place == NAME && self.keeps[NAME] {
                self.columns[NAME].put_text(self.rows, b""); // a missing name is the empty text
            } else if field.text.is_escaped {
                cursor.unescape(field.text, &mut Vec::new())?; // is it JSON at all?
            }
        }
        self.rows += 1;
        self.events += 1;
        Ok(())
    }
}

/// Read an argument into its column.
#[inline(always)]
fn put(column: &mut Column, cursor: &mut Cursor, kind: Type, row: usize) -> Read<()> {
    match kind {
        Type::Integer(limit) => {
            let value = cursor.integer()?;
            if !(-limit..=limit).contains(&value) {
                return Err(Refusal::Argument);
            }
            column.put(row, value);
        }
        Type::Narrow => {
            let value = i32::try_from(cursor.integer()?).map_err(|_| Refusal::Argument)?;
            column.put_narrow(row, value);
        }
        Type::Double(limit) => {
            let value = double(cursor)?;
            if value.abs() > limit {
                return Err(Refusal::Argument);
            }
            column.put(row, value.to_bits() as i64);
        }
        Type::Dims => {
            cursor.sizes(&mut column.bytes, 3, SIZE_DIGITS)?;
            column.end_text(row);
        }
        Type::Names => {
            cursor.names(&mut column.bytes)?;
            column.end_text(row);
        }
        Type::List => {
            if cursor.byte() != b'[' {
                return Err(Refusal::Argument);
            }
            cursor.plain_value(&mut column.bytes)?;
            column.end_text(row);
        }
        Type::Numbers(digits, most) if cursor.byte() == b'"' => {
            let text = cursor.string()?;
            let text = &cursor.text[text.start..text.end];
            if text.len() > most || !is_list_of_numbers(text, digits) {
                return Err(Refusal::Argument);
            }
            column.put_text(row, text);
        }
        Type::Numbers(digits, most) => {
            let start = column.bytes.len();
            cursor.sizes(&mut column.bytes, 1, digits)?;
            if column.bytes.len() - start > most {
                return Err(Refusal::Argument);
            }
            column.end_text(row);
        }
        Type::Text if cursor.byte() == b'"' => {
            let text = cursor.string()?;
            cursor.unescape(text, &mut column.bytes)?;
            column.end_text(row);
        }
        Type::Text => {
            // The engine prints fractions anew, and looks for arguments in objects once more.
            cursor.plain_value(&mut column.bytes)?;
            column.end_text(row);
        }
        Type::Triple(limit) => {
            let mut values = [0; 3];
            cursor.pass(b'[')?;
            for (place, value) in values.iter_mut().enumerate() {
                *value = cursor.integer()?;
                if !(-limit..=limit).contains(value) {
                    return Err(Refusal::Argument);
                }
                if cursor.goes_on(b']')? != (place < 2) {
                    return Err(Refusal::Argument);
                }
            }
            column.put_list(row, &values);
        }
    }
    Ok(())
}

/// Whether a text is a list as PyTorch writes it: "[0, 1, 2]", or "[0, 1, ...]" if it was cut short.
fn is_list_of_numbers(text: &[u8], digits: usize) -> bool {
    let Some(inside) = text.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) else { return false };
    if inside.is_empty() {
        return true;
    }
    let mut is_cut = false;
    let mut parts = inside.split(|byte| *byte == b',').enumerate();
    parts.all(|(place, part)| {
        let part = if place > 0 { part.strip_prefix(b" ").unwrap_or(part) } else { part };
        let is_number = !part.is_empty() && part.len() <= digits && part.iter().all(u8::is_ascii_digit);
        is_number || place > 0 && part == b"..." && !std::mem::replace(&mut is_cut, true)
    })
}

fn double(cursor: &mut Cursor) -> Read<f64> {
    let start = cursor.at;
    cursor.number()?;
    let text = std::str::from_utf8(&cursor.text[start..cursor.at]).map_err(|_| Refusal::Argument)?;
    let value: f64 = text.parse().map_err(|_| Refusal::Argument)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Refusal::Argument)
    }
}
