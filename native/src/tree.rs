//! Who called whom on a host thread, in one pass over the events in the order in which they open.
//!
//! What is computed is defined by `hta_sql/ingestion/call_tree.py`: the parent of an event is the
//! latest started event of its thread that ends no sooner. Those that may still enclose something
//! are a stack: whatever ends before the next event does cannot enclose a later one that it
//! would not enclose through that one.

use std::collections::HashMap;

const OPERATOR: i8 = 0;
const ANNOTATION: i8 = 2;
const MODULE_CALL: i8 = 4;
const FRAME: i8 = 5;
const MEMORY_EVENT: i8 = 6;

/// What a path is multiplied by on its way down a level.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Columns of ids that a row has: parent, operator, annotation, module, frame, backward operator,
/// stack, step.
pub const IDS: usize = 8;

/// A host event, as `sql/ingest/link/call_tree.sql` gives it.
#[derive(Clone, Copy)]
pub struct Event {
    /// Equal on one thread; those of a thread follow each other.
    pub thread: i32,
    /// Start [ns].
    pub ts: i64,
    /// End [ns].
    pub end: i64,
    /// Its event_id.
    pub id: i64,
    /// What it is, by the numbers above.
    pub kind: i8,
    /// It is a backward operator.
    pub is_backward: bool,
    /// Hash of its name.
    pub name: u64,
}

/// What the tree says of an event.
pub struct Row {
    /// In the order of [`IDS`].
    pub ids: [Option<i64>; IDS],
    /// Number of events around it.
    pub depth: i32,
    /// It starts inside of an earlier event, but ends after it.
    pub overlaps: bool,
}

/// An event that later ones may lie inside of, with what is nearest of each kind, itself included.
struct Open {
    ts: i64,
    end: i64,
    depth: i32,
    id: i64,
    /// Place on the stack of the nearest event that is no memory event, itself or below.
    solid: Option<usize>,
    nearest: [Option<i64>; 5],
    /// Hash of the names from the outermost event down to its own.
    path: u64,
    /// The path by which its stack is known, and that stack.
    known_as: (u64, i64),
}

/// The tree of one rank.
pub struct Tree {
    /// Start, end [ns] and number of profiler steps, in order; they do not overlap.
    steps: Vec<[i64; 3]>,
    known_stacks: usize,
    thread: Option<i32>,
    open: Vec<Open>,
    stacks: HashMap<u64, i64>,
}

impl Tree {
    /// Begin a tree that remembers so many stacks from one batch to the next.
    pub fn new(steps: Vec<[i64; 3]>, known_stacks: usize) -> Self {
        Self { steps, known_stacks, thread: None, open: Vec::new(), stacks: HashMap::new() }
    }

    /// Place the next event.
    pub fn place(&mut self, event: Event) -> Row {
        if self.thread != Some(event.thread) {
            self.open.clear();
            self.thread = Some(event.thread);
        }
        let mut overlaps = false;
        while let Some(top) = self.open.last() {
            if top.end >= event.end {
                break;
            }
            overlaps |= top.end > event.ts && top.ts < event.ts;
            self.open.pop();
        }
        let is_memory = event.kind == MEMORY_EVENT;
        let top = self.open.len().checked_sub(1);
        // Memory events are leaves; two at one instant do not enclose each other.
        let above = if is_memory { top.and_then(|top| self.open[top].solid) } else { top };
        let parent = above.map(|above| &self.open[above]);

        // An operator and an annotation of one name are two things.
        let own = event.name ^ event.kind as u64;
        let path = parent.map_or(own, |parent| own.wrapping_add(STEP.wrapping_mul(parent.path)));
        let known_path = parent.filter(|_| is_memory).map_or(path, |parent| parent.path);
        let stack = *self.stacks.entry(known_path).or_insert(event.id);
        let around = parent.map_or([None; 5], |parent| parent.nearest);
        let depth = parent.map_or(0, |parent| parent.depth + 1);

        let mut nearest = around;
        let is_frame = matches!(event.kind, MODULE_CALL | FRAME);
        let is_of = [event.kind == OPERATOR, event.kind == ANNOTATION, event.kind == MODULE_CALL, is_frame, event.is_backward];
        for (nearest, is_of) in nearest.iter_mut().zip(is_of) {
            if is_of {
                *nearest = Some(event.id);
            }
        }
        let [operator, annotation, module, frame, _] = around;
        let row = Row {
            ids: [
                parent.map(|parent| parent.id),
                operator,
                annotation,
                module,
                frame,
                nearest[4],
                (!is_memory || parent.is_some()).then_some(stack),
                self.step(event.ts),
            ],
            depth,
            overlaps,
        };
        let solid = if is_memory { above } else { Some(self.open.len()) };
        let known_as = (known_path, stack);
        self.open.push(Open { ts: event.ts, end: event.end, depth, id: event.id, solid, nearest, path, known_as });
        row
    }

    /// End a batch: of too many stacks only those are remembered that events may still be in.
    pub fn end_batch(&mut self) {
        if self.stacks.len() > self.known_stacks {
            self.stacks = self.open.iter().map(|open| open.known_as).collect();
        }
    }

    fn step(&self, ts: i64) -> Option<i64> {
        let behind = self.steps.partition_point(|step| step[0] <= ts);
        let [_, end, number] = *self.steps.get(behind.checked_sub(1)?)?;
        (ts < end).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(ts: i64, end: i64, kind: i8) -> Event {
        Event { thread: 1, ts, end, id: ts * 100 + i64::from(kind), kind, is_backward: false, name: 7 }
    }

    #[test]
    fn memory_events_are_leaves_of_what_is_around_them() {
        let mut tree = Tree::new(vec![[0, 5, 3]], 9);
        let rows: Vec<Row> = [event(0, 9, 0), event(2, 2, 6), event(2, 2, 6), event(5, 6, 1)].into_iter().map(|e| tree.place(e)).collect();
        assert_eq!(rows.iter().map(|row| row.ids[0]).collect::<Vec<_>>(), [None, Some(0), Some(0), Some(0)]);
        assert_eq!(rows.iter().map(|row| row.ids[7]).collect::<Vec<_>>(), [Some(3), Some(3), Some(3), None]);
    }
}
