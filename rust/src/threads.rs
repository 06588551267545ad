//! Threads without surprises: small tasks stay on the calling thread, and pools are created once.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Tasks with fewer values than this run on the calling thread. Handing a task to a second thread took 4 to 17 µs (while the
/// other core was busy); on one thread, the steps between 64 cuts of 2^12 numbers took 20 µs, those of 2^15 numbers 98 µs. To
/// predict 5,000 rows of 20 normal features took 0.21 ms with 2^15, 0.28 with 2^12 and 0.40 with 2^18.
const SMALL: usize = 1 << 15;

/// The largest number of threads: a limit to what a caller can ask for, not a tuned value.
const MOST: usize = 256;

/// Pools by process and number of threads.
type Pools = Mutex<HashMap<(u32, usize), Arc<ThreadPool>>>;

/// Returns the pool with this many threads, made at the first call; None if it cannot be made. Pools are kept by process too,
/// because a forked process inherits the map but not the threads. `key` is the number of the process, and that of threads.
fn pool(threads: usize) -> Option<Arc<ThreadPool>> {
    static POOLS: OnceLock<Pools> = OnceLock::new();
    let mut pools = POOLS.get_or_init(Default::default).lock().ok()?;
    let key = (std::process::id(), threads);
    if let Some(pool) = pools.get(&key) {
        return Some(pool.clone());
    }
    let new_pool = Arc::new(ThreadPoolBuilder::new().num_threads(threads).build().ok()?);
    pools.insert(key, new_pool.clone());
    Some(new_pool)
}

/// Returns how many threads to use for a task that reads so many values: at most `threads`, and one if there are few values.
/// `values` is the number of values.
pub fn worth(threads: usize, values: usize) -> usize {
    if values < SMALL { 1 } else { threads.clamp(1, MOST) }
}

/// A function of the number of a task; and one of the number of a piece and the piece. As references, so that the code for
/// pools is not compiled for each of them.
type Work<'a, R> = &'a (dyn Fn(usize) -> R + Sync);
type PieceWork<'a, T, R> = &'a (dyn Fn(usize, &mut [T]) -> R + Sync);

/// Calls `f` with each of 0 .. `tasks` - 1, the numbers of tasks, on a pool's threads. Returns what it returned, by task.
/// `tasks` is the number of tasks.
fn map_on_pool<R: Send>(pool: &ThreadPool, tasks: usize, f: Work<R>) -> Vec<R> {
    // Where each task leaves what `f` returned; None until then.
    let slots: Vec<Mutex<Option<R>>> = (0..tasks).map(|_| Mutex::new(None)).collect();
    run(pool, tasks, &|task| *lock(&slots[task]) = Some(f(task)));
    slots.into_iter().filter_map(|slot| lock(&slot).take()).collect()
}

/// Calls `f` with each of 0 .. `tasks` - 1, the numbers of tasks, on a pool's threads.
fn run(pool: &ThreadPool, tasks: usize, f: Work<()>) {
    pool.install(|| (0..tasks).into_par_iter().with_max_len(1).for_each(f));
}

/// Locks a slot, even if a thread panicked while it had locked it.
fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `(0..tasks).map(&f).collect()` on so many threads: calls `f` with the number of each task. If tasks fail, returns the
/// error of the first one in order. `tasks` is the number of tasks, and `pool` the threads; None on a single thread.
pub fn try_map<T: Send, E: Send>(
    threads: usize,
    tasks: usize,
    f: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let f: Work<Result<T, E>> = &f;
    match (threads > 1 && tasks > 1).then(|| pool(threads)).flatten() {
        None => (0..tasks).map(f).collect(),
        Some(pool) => map_on_pool(&pool, tasks, f).into_iter().collect(),
    }
}

/// [`try_map`] for functions that cannot fail. It calls `f` with each of 0 .. `tasks` - 1. At most `threads` threads are
/// used.
pub fn map<T: Send>(threads: usize, tasks: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let Ok(outputs) = try_map(threads, tasks, |task| Ok::<_, Infallible>(f(task)));
    outputs
}

/// Divides `0..n` into ranges of length `size`, and calls `f` with each on so many threads. Returns what it returned, by
/// range. Errors are those of [`try_map`]. `i` is the number of a range; the last one may be shorter.
pub fn try_ranges<T: Send, E: Send>(
    threads: usize,
    n: usize,
    size: usize,
    f: impl Fn(Range<usize>) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let size = size.max(1);
    try_map(threads, n.div_ceil(size), |i| f(i * size..n.min((i + 1) * size)))
}

/// [`try_ranges`] for functions that cannot fail. It divides `0..n` into ranges of length `size`, calls `f` with each on at
/// most `threads` threads, and returns what `f` returned, by range.
pub fn ranges<T: Send>(
    threads: usize,
    n: usize,
    size: usize,
    f: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let Ok(outputs) = try_ranges(threads, n, size, |range| Ok::<_, Infallible>(f(range)));
    outputs
}

/// Divides `out` into pieces of length `size`, and calls `f(number, piece)` with each on so many threads. Returns what it
/// returned, by piece. Errors are those of [`try_map`]. `pool` are the threads; None on a single one.
pub fn try_pieces<T: Send, R: Send, E: Send>(
    threads: usize,
    out: &mut [T],
    size: usize,
    f: impl Fn(usize, &mut [T]) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let f: PieceWork<T, Result<R, E>> = &f;
    let pieces = out.chunks_mut(size.max(1));
    match (threads > 1 && pieces.len() > 1).then(|| pool(threads)).flatten() {
        None => pieces.enumerate().map(|(i, piece)| f(i, piece)).collect(),
        Some(pool) => {
            let pieces: Vec<_> = pieces.map(Mutex::new).collect();
            let outputs = map_on_pool(&pool, pieces.len(), &|i| f(i, &mut lock(&pieces[i])));
            outputs.into_iter().collect()
        }
    }
}

/// [`try_pieces`] for functions that cannot fail. It divides `out` into pieces of length `size`, calls `f(number, piece)`
/// with each on at most `threads` threads, and returns what `f` returned, by piece.
pub fn pieces<T: Send, R: Send>(
    threads: usize,
    out: &mut [T],
    size: usize,
    f: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let Ok(outputs) = try_pieces(threads, out, size, |i, piece| Ok::<_, Infallible>(f(i, piece)));
    outputs
}

/// Calls `f(index, element)` with each element on so many threads. Returns what it returned, by element. `threads` is the
/// number of threads; `i` is the index of an element.
pub fn each<T: Send, R: Send>(
    threads: usize,
    elements: &mut [T],
    f: impl Fn(usize, &mut T) -> R + Sync,
) -> Vec<R> {
    let size = 1; // a piece is a single element
    let outputs = pieces(threads, elements, size, |i, piece| {
        piece.iter_mut().map(|element| f(i, element)).collect::<Vec<R>>()
    });
    outputs.into_iter().flatten().collect()
}

/// Appends `more` copies of `element` to `vector`. All threads write, because touching new pages of memory takes most of the
/// time. `threads` is the number of threads, and `pool` the threads; None on a single one.
pub fn lengthen<T: Clone + Send + Sync>(
    threads: usize,
    vector: &mut Vec<T>,
    more: usize,
    element: T,
) {
    match (threads > 1 && more >= SMALL).then(|| pool(threads)).flatten() {
        None => vector.resize(vector.len() + more, element),
        Some(pool) => pool.install(|| vector.par_extend(rayon::iter::repeat_n(element, more))),
    }
}
