import { describe, expect, it } from 'vitest';
import { begin, commit, redo, seal, undo } from './history';

describe('undo and redo', () => {
  it('go back and forth through every step', () => {
    let history = begin('a');
    for (const next of ['b', 'c', 'd']) history = commit(history, next);
    const seen = [history.present];
    for (let step = 0; step < 3; step += 1) {
      history = undo(history);
      seen.push(history.present);
    }
    expect(seen).toEqual(['d', 'c', 'b', 'a']);
    for (let step = 0; step < 3; step += 1) history = redo(history);
    expect(history.present).toBe('d');
  });

  it('stay where they are at either end', () => {
    const history = begin('a');
    expect(undo(history)).toBe(history);
    expect(redo(history)).toBe(history);
  });

  it('forget what was undone once something new is done', () => {
    let history = commit(begin('a'), 'b');
    history = commit(undo(history), 'c');
    expect(redo(history).present).toBe('c');
    expect(undo(history).present).toBe('a');
  });

  it('take typing in one field as one step', () => {
    let history = commit(begin('1'), '12', 'rate');
    history = commit(history, '123', 'rate');
    expect(undo(history).present).toBe('1');
  });

  it('keep fields apart, and visits of the same field', () => {
    let history = commit(begin('0'), '1', 'rate');
    history = commit(history, '2', 'delay');
    expect(undo(history).present).toBe('1');
    history = commit(seal(history), '3', 'delay');
    expect(undo(history).present).toBe('2');
  });

  it('do not merge typing with what came before an undo', () => {
    const history = undo(commit(commit(begin('0'), '1', 'rate'), '2', 'delay'));
    expect(undo(commit(history, '9', 'rate')).present).toBe('1');
  });

  it('count no step where nothing changes', () => {
    const history = begin('a');
    expect(commit(history, 'a')).toBe(history);
  });
});
