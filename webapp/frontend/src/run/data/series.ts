/** A value over time with a bounded number of points: when it is full, every second point is dropped. */

const CAPACITY = 4096;

export class Series {
  length = 0;
  private readonly times = new Float64Array(CAPACITY);
  private readonly values = new Float64Array(CAPACITY);
  /** Of all points pushed, every `stride`-th is kept, and the newest one. */
  private stride = 1;
  private pushed = 0;

  /** Adds a point; `time_s` must not be before the last one. */
  push(time_s: number, value: number): void {
    const newestIsExtra = this.pushed > 0 && (this.pushed - 1) % this.stride !== 0;
    if (newestIsExtra) this.length -= 1;
    else if (this.length === CAPACITY) this.halve();
    this.times[this.length] = time_s;
    this.values[this.length] = value;
    this.length += 1;
    this.pushed += 1;
  }

  timeAt(index: number): number {
    return this.times[index]!;
  }

  valueAt(index: number): number {
    return this.values[index]!;
  }

  /** The value that holds at `time_s`; `otherwise` before the first point. */
  at(time_s: number, otherwise: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle]! > time_s) high = middle;
      else low = middle + 1;
    }
    return low === 0 ? otherwise : this.values[low - 1]!;
  }

  private halve(): void {
    for (let index = 0; 2 * index < this.length; index += 1) {
      this.times[index] = this.times[2 * index]!;
      this.values[index] = this.values[2 * index]!;
    }
    this.length = Math.ceil(this.length / 2);
    this.stride *= 2;
  }
}
