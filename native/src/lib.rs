//! The compiled reader of traces: chunks of text in, columns of the staged tables out.
//!
//! An accelerator of `hta_sql/ingestion/native.py`, which may be absent. What it does not read
//! exactly as the statements of `sql/ingest` do, it refuses, and the chunk goes to them.
//!
//! This file is the boundary, and all that is unsafe: pointers of the caller become slices, and a
//! reader becomes a pointer. Whoever calls keeps the text alive for the length of a call, and the
//! reader for as long as its columns are looked at.

mod columns;
mod events;
mod json;
mod offsets;
mod tree;

use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::events::Reader;
use crate::json::Refusal;
use crate::tree::{Event, Tree, IDS};

/// Raised with whatever changes what crosses the boundary, or what is read.
pub const VERSION: u32 = 4;

/// Where the parts of a column stand; those that it does not have are empty.
#[repr(C)]
pub struct Parts {
    valid: *const u8,
    valid_bytes: usize,
    wide: *const i64,
    wide_count: usize,
    narrow: *const i32,
    narrow_count: usize,
    text: *const u8,
    text_bytes: usize,
    is_touched: bool,
}

/// Say which boundary this is.
#[no_mangle]
pub extern "C" fn hta_sql_reader_version() -> u32 {
    VERSION
}

/// Make a reader; null where the plan is not understood.
///
/// The plan is UTF-8, a line for each table, each argument of the table above it, and each
/// category, its words parted by tabs:
///
/// ```text
/// table     NAME  FIELDS (parted by spaces)  typed | whole
/// argument  NAME  COLUMN (its number)  KIND  LIMIT  CATEGORIES (bits)
/// category  NAME (or * and its end)  TABLE
/// ```
///
/// KIND is integer, narrow, double, text, triple, or the form of a checked text: dims, names, list,
/// ranks, splits.
///
/// # Safety
/// `plan` points to so many bytes.
#[no_mangle]
pub unsafe extern "C" fn hta_sql_reader_new(plan: *const u8, bytes: usize) -> *mut Reader {
    // SAFETY: as the caller says.
    let plan = unsafe { std::slice::from_raw_parts(plan, bytes) };
    let made = catch_unwind(|| std::str::from_utf8(plan).ok().and_then(Reader::new));
    made.ok().flatten().map_or(std::ptr::null_mut(), |reader| Box::into_raw(Box::new(reader)))
}

/// Read a chunk: the number of its events, or with a minus why it is refused.
///
/// # Safety
/// `reader` is of [`hta_sql_reader_new`] and in no other call, `text` points to so many bytes.
#[no_mangle]
pub unsafe extern "C" fn hta_sql_reader_read(reader: *mut Reader, text: *const u8, bytes: usize) -> i64 {
    // SAFETY: as the caller says.
    let (reader, text) = unsafe { (&mut *reader, std::slice::from_raw_parts(text, bytes)) };
    read_or_cut(reader, |reader| reader.read(text))
}

/// Read a chunk, and take it back where it is refused; a reader that cannot do so reads nothing more.
fn read_or_cut(reader: &mut Reader, read: impl FnOnce(&mut Reader) -> json::Read<usize>) -> i64 {
    if reader.is_broken {
        return -(Refusal::Panic as i64);
    }
    match catch_unwind(AssertUnwindSafe(|| read(reader))).unwrap_or(Err(Refusal::Panic)) {
        Ok(events) => events as i64,
        Err(refusal) => {
            reader.is_broken = catch_unwind(AssertUnwindSafe(|| reader.cut())).is_err();
            -(refusal as i64)
        }
    }
}

/// Number the events: of each chunk that was read, in order, the id of its first one is given.
///
/// Whether the number of chunks is right. Afterwards no chunk may be read.
///
/// # Safety
/// `reader` as in [`hta_sql_reader_read`], `first_ids` points to so many.
#[no_mangle]
pub unsafe extern "C" fn hta_sql_reader_number(reader: *mut Reader, first_ids: *const i64, count: usize) -> bool {
    // SAFETY: as the caller says.
    let (reader, first_ids) = unsafe { (&mut *reader, std::slice::from_raw_parts(first_ids, count)) };
    !reader.is_broken && catch_unwind(AssertUnwindSafe(|| reader.number(first_ids))).unwrap_or(false)
}

/// Bytes that the columns hold.
///
/// # Safety
/// `reader` as in [`hta_sql_reader_read`].
#[no_mangle]
pub unsafe extern "C" fn hta_sql_reader_size(reader: *const Reader) -> usize {
    // SAFETY: as the caller says.
    unsafe { &*reader }.size()
}

/// Rows of a table if `of_rows`, else its events; none where there is no such table.
///
/// # Safety
/// `reader` as in [`hta_sql_reader_read`].
#[no_mangle]
pub unsafe extern "C" fn hta_sql_reader_count(reader: *const Reader, table: usize, of_rows: bool) -> usize {
    // SAFETY: as the caller says.
    let reader = unsafe { &*reader };
    reader.tables.get(table).map_or(0, |table| if of_rows { table.rows } else { table.events })
}

/// Look at a column, filled up to the rows of its table; whether it is there.
///
/// # Safety
/// `reader` as in [`hta_sql_reader_read`], `parts` points to one. What stands there is good until
/// the reader is freed or reads again.
#[no_mangle]
pub unsafe extern "C" fn hta_sql_reader_column(reader: *mut Reader, table: usize, column: usize, parts: *mut Parts) -> bool {
    // SAFETY: as the caller says.
    let (reader, parts) = unsafe { (&mut *reader, &mut *parts) };
    let Some(table) = reader.tables.get_mut(table) else { return false };
    let rows = table.rows;
    let Some(column) = table.columns.get_mut(column) else { return false };
    parts.is_touched = column.is_touched;
    if column.is_touched {
        column.pad(rows);
        (parts.valid, parts.valid_bytes) = (column.valid.as_ptr(), column.valid.len());
        (parts.wide, parts.wide_count) = (column.wide.as_ptr(), column.wide.len());
        (parts.narrow, parts.narrow_count) = (column.narrow.as_ptr(), column.narrow.len());
        (parts.text, parts.text_bytes) = (column.bytes.as_ptr(), column.bytes.len());
    }
    true
}

/// Free a reader.
///
/// # Safety
/// `reader` is of [`hta_sql_reader_new`], or null, and is not used again.
#[no_mangle]
pub unsafe extern "C" fn hta_sql_reader_free(reader: *mut Reader) {
    if !reader.is_null() {
        // SAFETY: as the caller says.
        drop(unsafe { Box::from_raw(reader) });
    }
}

/// Find the events of a chunk: their number, or with a minus why it is refused.
///
/// `keys` is their names, parted by tabs; what stands in `into` is told by [`offsets::offsets`].
///
/// # Safety
/// `text` and `keys` point to so many bytes, `into` has room for so many numbers.
#[no_mangle]
pub unsafe extern "C" fn hta_sql_event_offsets(
    text: *const u8,
    bytes: usize,
    keys: *const u8,
    key_bytes: usize,
    into: *mut u32,
    room: usize,
) -> i64 {
    // SAFETY: as the caller says.
    let (text, keys, into) = unsafe {
        (std::slice::from_raw_parts(text, bytes), std::slice::from_raw_parts(keys, key_bytes), std::slice::from_raw_parts_mut(into, room))
    };
    let find = AssertUnwindSafe(|| {
        let keys: Vec<&[u8]> = keys.split(|byte| *byte == b'\t').collect();
        offsets::offsets(text, &keys, into)
    });
    match catch_unwind(find).unwrap_or(Err(Refusal::Panic)) {
        Ok(events) => events as i64,
        Err(refusal) => -(refusal as i64),
    }
}

/// Host events in the order of `sql/ingest/link/call_tree.sql`, so many rows in each column.
#[repr(C)]
pub struct HostEvents {
    rows: usize,
    thread: *const i32,
    ts: *const i64,
    end: *const i64,
    id: *const i64,
    kind: *const i8,
    is_backward: *const i8,
    name: *const u64,
}

/// Where the rows of the call tree go.
#[repr(C)]
pub struct CallTree {
    /// The columns of ids one behind the other, each of so many rows.
    ids: *mut i64,
    /// Their bits of what is not NULL, one behind the other, then the bits of overlaps; all zero.
    bits: *mut u8,
    depth: *mut i32,
}

/// Begin the call tree of a rank.
///
/// # Safety
/// `steps` points to so many triples: start, end and number.
#[no_mangle]
pub unsafe extern "C" fn hta_sql_tree_new(steps: *const [i64; 3], count: usize, known_stacks: usize) -> *mut Tree {
    // SAFETY: as the caller says.
    let steps = unsafe { std::slice::from_raw_parts(steps, count) };
    Box::into_raw(Box::new(Tree::new(steps.to_vec(), known_stacks)))
}

/// Place a batch of events in the tree; whether that was done.
///
/// # Safety
/// `tree` is of [`hta_sql_tree_new`] and in no other call; the columns of `events` have its rows, and
/// `into` has room for them: 8 times the rows of ids, 9 times the bytes of their bits, and depths.
#[no_mangle]
pub unsafe extern "C" fn hta_sql_tree_add(tree: *mut Tree, events: *const HostEvents, into: *mut CallTree) -> bool {
    // SAFETY: as the caller says.
    let (tree, events, into) = unsafe { (&mut *tree, &*events, &mut *into) };
    let (rows, bytes) = (events.rows, events.rows.div_ceil(8));
    // SAFETY: as the caller says.
    let (thread, ts, end, id) = unsafe {
        (
            std::slice::from_raw_parts(events.thread, rows),
            std::slice::from_raw_parts(events.ts, rows),
            std::slice::from_raw_parts(events.end, rows),
            std::slice::from_raw_parts(events.id, rows),
        )
    };
    // SAFETY: as the caller says.
    let (kind, is_backward, name) = unsafe {
        (
            std::slice::from_raw_parts(events.kind, rows),
            std::slice::from_raw_parts(events.is_backward, rows),
            std::slice::from_raw_parts(events.name, rows),
        )
    };
    // SAFETY: as the caller says.
    let (ids, bits, depth) = unsafe {
        (
            std::slice::from_raw_parts_mut(into.ids, IDS * rows),
            std::slice::from_raw_parts_mut(into.bits, (IDS + 1) * bytes),
            std::slice::from_raw_parts_mut(into.depth, rows),
        )
    };
    let place = AssertUnwindSafe(|| {
        for n in 0..rows {
            let (kind, is_backward) = (kind[n], is_backward[n] != 0);
            let event = Event { thread: thread[n], ts: ts[n], end: end[n], id: id[n], kind, is_backward, name: name[n] };
            let row = tree.place(event);
            let (byte, bit) = (n / 8, 1 << (n % 8));
            for (column, found) in row.ids.into_iter().enumerate() {
                ids[column * rows + n] = found.unwrap_or(0);
                if found.is_some() {
                    bits[column * bytes + byte] |= bit;
                }
            }
            if row.overlaps {
                bits[IDS * bytes + byte] |= bit;
            }
            depth[n] = row.depth;
        }
        tree.end_batch();
    });
    catch_unwind(place).is_ok()
}

/// Free a tree.
///
/// # Safety
/// `tree` is of [`hta_sql_tree_new`], and is not used again.
#[no_mangle]
pub unsafe extern "C" fn hta_sql_tree_free(tree: *mut Tree) {
    // SAFETY: as the caller says.
    drop(unsafe { Box::from_raw(tree) });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> Reader {
        let fields = events::FIELDS.join(" ");
        let whole = |name| format!("table\t{name}\t{fields}\twhole");
        let plan = [
            whole("flows"),
            whole("memory_events"),
            whole("counters"),
            "argument\tseries\t0\ttext\t0\t0".into(),
            "argument\tvalue\t1\tdouble\t0\t0".into(),
            whole("other_events"),
        ];
        Reader::new(&plan.join("\n")).expect("a plan")
    }

    const EVENT: &[u8] = br#"{"ph": "i", "s": "g", "name": "a", "pid": 1, "tid": 2, "ts": 5.5}"#;

    #[test]
    fn a_refused_chunk_leaves_no_rows() {
        let mut reader = reader();
        assert_eq!(read_or_cut(&mut reader, |r| r.read(EVENT)), 1);
        let size = reader.size();
        let broken = [EVENT, b", {\"ph\": "].concat();
        assert!(read_or_cut(&mut reader, |r| r.read(&broken)) < 0);
        assert_eq!(reader.size(), size);
        assert!(reader.number(&[100]));
    }

    #[test]
    fn a_panic_is_an_error_of_its_chunk() {
        let mut reader = reader();
        assert_eq!(read_or_cut(&mut reader, |_| panic!("a fault")), -(Refusal::Panic as i64));
        assert_eq!(read_or_cut(&mut reader, |r| r.read(EVENT)), 1);
    }

    #[test]
    fn a_broken_reader_reads_and_numbers_nothing() {
        let mut reader = reader();
        reader.is_broken = true;
        assert_eq!(read_or_cut(&mut reader, |r| r.read(EVENT)), -(Refusal::Panic as i64));
        // SAFETY: the reader and the list live during the call.
        assert!(!unsafe { hta_sql_reader_number(&mut reader, [0_i64; 0].as_ptr(), 0) });
    }

    #[test]
    fn a_plan_that_is_not_understood_makes_no_reader() {
        for plan in ["", "nonsense", "table\tflows\tevent_id", "\u{0}"] {
            // SAFETY: the plan lives during the call.
            assert!(unsafe { hta_sql_reader_new(plan.as_ptr(), plan.len()) }.is_null(), "{plan:?}");
        }
    }
}
