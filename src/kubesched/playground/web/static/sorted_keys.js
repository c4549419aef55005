// Keys in order, kept so one by one: to find a place takes a few steps, to move the rest is one copy.

export class SortedKeys {
  constructor(keys = []) {
    this.keys = keys.sort(byCharacters);
  }

  get size() {
    return this.keys.length;
  }

  add(key) {
    const at = this.place(key);
    if (this.keys[at] !== key) this.keys.splice(at, 0, key);
  }

  remove(key) {
    const at = this.place(key);
    if (this.keys[at] === key) this.keys.splice(at, 1);
  }

  // The first place whose key is not less.
  place(key) {
    let low = 0;
    let high = this.keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.keys[middle] < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const byCharacters = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
