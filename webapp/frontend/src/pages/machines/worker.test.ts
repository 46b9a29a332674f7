import { expect, test } from 'vitest';
import type { FleetWorker } from '@/api/types';
import { besideText, calibrationNow, capabilityText, hostOf, memoryText, state } from './worker';

const RUN = { id: 1, name: 'a run', status: 'running', seconds: 3 };

function worker(fields: Partial<FleetWorker>): FleetWorker {
  const base = { node: 'emulate@lab.one', queue: 'emulate', drained: false, refused: '', runs: [] };
  return { ...base, available_bytes: 3.24e9, memory_bytes: 16e9, ...fields } as FleetWorker;
}

test('a worker that is drained in the middle of a run is draining until the run is over', () => {
  const refused = 'it was drained by ann';
  expect(state(worker({ drained: true, refused, runs: [RUN] }))).toBe('draining');
  expect(state(worker({ drained: true, refused }))).toBe('drained');
});

test('a worker is refused for its version, works on a run, or is ready', () => {
  expect(state(worker({ refused: 'its code has the version x' }))).toBe('refused');
  expect(state(worker({ runs: [RUN] }))).toBe('working');
  expect(state(worker({}))).toBe('ready');
});

test('a worker that calibrates is no longer ready, and one that is drained meanwhile is draining', () => {
  const calibrating = { what: 'kernels', about_s: 60, elapsed_s: 15 };
  expect(state(worker({ calibrating }))).toBe('calibrating');
  expect(state(worker({ calibrating, drained: true, refused: 'it was drained by ann' }))).toBe('draining');
});

test('a calibration says what it waits for, then how far it is, and is never shown as complete', () => {
  expect(calibrationNow(worker({}))).toBe(null);
  expect(calibrationNow(worker({ calibration_wanted: true }))?.text).toBe('Begins when the worker is free.');
  const waiting = { what: 'waiting: 1 run ahead on this machine', about_s: 60, elapsed_s: null };
  expect(calibrationNow(worker({ calibrating: waiting }))).toEqual({
    text: 'Waiting: 1 run ahead on this machine',
    share: 0,
  });
  const measuring = { what: 'kernels', about_s: 60, elapsed_s: 15.2 };
  expect(calibrationNow(worker({ calibrating: measuring }))?.text).toBe('15 s of about 60 s: kernels');
  expect(calibrationNow(worker({ calibrating: { ...measuring, elapsed_s: 90 } }))?.share).toBe(0.99);
});

test('the host is what follows the queue, and memory is in decimal gigabytes', () => {
  expect(hostOf(worker({}))).toBe('lab.one');
  expect(memoryText(worker({}))).toBe('3.2 of 16 GB');
});

test('a worker whose emulations have the rights of root says so', () => {
  expect(capabilityText(worker({ capabilities: ['netem', 'user namespaces'] }))).toBe('netem');
  expect(capabilityText(worker({ capabilities: ['tun'] }))).toBe('without netem, with root rights');
  expect(capabilityText(worker({ queue: 'plan', capabilities: [] }))).toBe('');
});

test('a program beside a worker is waited for only if it counts', () => {
  const holder = { user: 'bob', pid: 7, purpose: 'run', since: 0, counts: true };
  expect(besideText(holder)).toMatch(/^In use by a run of bob \(process 7\)/);
  expect(besideText({ ...holder, counts: false })).toMatch(
    /^Also on this machine: .*; no run waits for it\.$/,
  );
});
