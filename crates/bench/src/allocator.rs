//! The system's allocator, with counting that can be switched on.

#![expect(
    unsafe_code,
    reason = "an allocator cannot be replaced otherwise; every call goes to the system's unchanged"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Off outside [`counted`] and [`counted_on_marked`], where a timing must not pay for counting.
static COUNTING: AtomicBool = AtomicBool::new(false);
/// Only marked threads count.
static MARKED_ONLY: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    // Without anything to drop or to make later, so that an allocator may look at it at any time.
    static MARKED: Cell<bool> = const { Cell::new(false) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number and size of allocations; growing counts as an allocation of the new size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

/// Runs `work` and counts what the whole process allocates meanwhile.
pub(crate) async fn counted<T>(work: impl Future<Output = T>) -> (T, Count) {
    ALLOCATIONS.store(0, Relaxed);
    BYTES.store(0, Relaxed);
    COUNTING.store(true, Relaxed);
    let output = work.await;
    COUNTING.store(false, Relaxed);
    let count = Count { allocations: ALLOCATIONS.load(Relaxed), bytes: BYTES.load(Relaxed) };
    (output, count)
}

/// Marks this thread for as long as it lives.
pub(crate) fn mark() {
    MARKED.set(true);
}

/// Runs `work` and counts what the marked threads allocate meanwhile.
pub(crate) async fn counted_on_marked<T>(work: impl Future<Output = T>) -> (T, Count) {
    MARKED_ONLY.store(true, Relaxed);
    let counted = counted(work).await;
    MARKED_ONLY.store(false, Relaxed);
    counted
}

struct Counting;

impl Counting {
    #[inline]
    fn note(bytes: usize) {
        if COUNTING.load(Relaxed) && (!MARKED_ONLY.load(Relaxed) || MARKED.get()) {
            ALLOCATIONS.fetch_add(1, Relaxed);
            BYTES.fetch_add(bytes as u64, Relaxed);
        }
    }
}

// SAFETY: each method passes its arguments on to `System`, whose contract is the same.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Self::note(new_size);
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}
