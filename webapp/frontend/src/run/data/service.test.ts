import { describe, expect, it } from 'vitest';
import type { Mark } from '@/api/types';
import { Service } from './service';

const mark = (time_s: number, name: string, request: number): Mark =>
  ({ type: 'mark', time_s, name, device: '', facts: { request, id: `r${request}` } }) as unknown as Mark;

describe('busy_s', () => {
  it('counts once the seconds in which any request waits for its answer', () => {
    const service = new Service();
    expect(service.busy_s(100)).toBe(0);
    service.apply(mark(100, 'request_accepted', 0));
    service.apply(mark(101, 'request_accepted', 1));
    service.apply(mark(103, 'request_finished', 0));
    expect(service.busy_s(104)).toBe(4);
    service.apply(mark(105, 'request_cancelled', 1));
    service.apply(mark(105, 'request_cancelled', 1));
    expect(service.busy_s(900)).toBe(5);
    service.apply(mark(900, 'request_accepted', 2));
    expect(service.busy_s(901.5)).toBe(6.5);
  });
});
