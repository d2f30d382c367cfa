//! Columns in Arrow's layout, which grow row by row and can be cut back to an earlier row.

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64 bits; of a number with a fraction, those of its double.
    Wide,
    /// 32 bits.
    Narrow,
    /// UTF-8.
    Text,
    /// Lists of 64 bits.
    List,
}

/// One column; rows that were not written are NULL.
pub struct Column {
    kind: Kind,
    rows: usize,
    /// Values of 64 bits, or those in the lists.
    pub wide: Vec<i64>,
    /// Values of 32 bits, or the ends of texts and lists, with a zero before the first.
    pub narrow: Vec<i32>,
    /// The texts, one behind the other.
    pub bytes: Vec<u8>,
    /// A bit for each row that is not NULL; empty while none is.
    pub valid: Vec<u8>,
    /// It has a value.
    pub is_touched: bool,
}

impl Column {
    /// Make an empty column.
    pub fn new(kind: Kind) -> Self {
        let narrow = if matches!(kind, Kind::Text | Kind::List) { vec![0] } else { Vec::new() };
        Self { kind, rows: 0, wide: Vec::new(), narrow, bytes: Vec::new(), valid: Vec::new(), is_touched: false }
    }

    /// Bytes that it holds.
    pub fn size(&self) -> usize {
        8 * self.wide.len() + 4 * self.narrow.len() + self.bytes.len() + self.valid.len()
    }

    /// Fill up with NULL to so many rows.
    pub fn pad(&mut self, rows: usize) {
        if rows <= self.rows {
            return;
        }
        if self.valid.is_empty() {
            self.valid.resize(self.rows / 8, 0xff);
            if self.rows % 8 > 0 {
                self.valid.push((1 << (self.rows % 8)) - 1);
            }
        }
        self.valid.resize(rows.div_ceil(8), 0);
        match self.kind {
            Kind::Wide => self.wide.resize(rows, 0),
            Kind::Narrow => self.narrow.resize(rows, 0),
            Kind::Text | Kind::List => self.narrow.resize(rows + 1, self.end()),
        }
        self.rows = rows;
    }

    /// Take back what was written behind so many rows.
    pub fn cut(&mut self, rows: usize) {
        if rows < self.rows {
            self.rows = rows;
            if !self.valid.is_empty() {
                self.valid.truncate(rows.div_ceil(8));
                if rows % 8 > 0 {
                    self.valid[rows / 8] &= (1 << (rows % 8)) - 1;
                }
            }
            match self.kind {
                Kind::Wide => self.wide.truncate(rows),
                Kind::Narrow => self.narrow.truncate(rows),
                Kind::Text | Kind::List => self.narrow.truncate(rows + 1),
            }
        }
        // Part of a value may stand behind the last whole one.
        match self.kind {
            Kind::Text => self.bytes.truncate(self.end() as usize),
            Kind::List => self.wide.truncate(self.end() as usize),
            _ => {}
        }
    }

    /// Where the last text or list ends.
    fn end(&self) -> i32 {
        self.narrow.last().copied().unwrap_or(0)
    }

    /// Count one row more, which is not NULL.
    #[inline(always)]
    fn add(&mut self, row: usize) {
        if !self.valid.is_empty() {
            if row / 8 == self.valid.len() {
                self.valid.push(0);
            }
            self.valid[row / 8] |= 1 << (row % 8);
        }
        self.is_touched = true;
        self.rows = row + 1;
    }

    /// Write a value of 64 bits.
    #[inline(always)]
    pub fn put(&mut self, row: usize, value: i64) {
        self.pad(row);
        self.wide.push(value);
        self.add(row);
    }

    /// Write a value of 32 bits.
    #[inline(always)]
    pub fn put_narrow(&mut self, row: usize, value: i32) {
        self.pad(row);
        self.narrow.push(value);
        self.add(row);
    }

    /// Write a list.
    #[inline(always)]
    pub fn put_list(&mut self, row: usize, values: &[i64]) {
        self.pad(row);
        self.wide.extend_from_slice(values);
        self.narrow.push(self.wide.len() as i32);
        self.add(row);
    }

    /// Write a text.
    #[inline(always)]
    pub fn put_text(&mut self, row: usize, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.end_text(row);
    }

    /// The text of this row is what stands in `bytes` behind that of the last one.
    #[inline(always)]
    pub fn end_text(&mut self, row: usize) {
        self.pad(row);
        self.narrow.push(self.bytes.len() as i32);
        self.add(row);
    }
}
