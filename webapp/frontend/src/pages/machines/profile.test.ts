import { expect, test } from 'vitest';
import { machineName, readCalibration } from './profile';

test('a file becomes a name that a device may have', () => {
  expect(machineName('board.json')).toBe('board');
  expect(machineName('My Board (2).JSON')).toBe('my-board-2');
  expect(machineName('3-pi.json')).toBe('pi');
  expect(machineName('….json')).toBe('machine');
  expect(machineName(`${'x'.repeat(50)}.json`)).toHaveLength(31);
});

test('a calibration is a JSON object of at most a mebibyte', async () => {
  const file = (text: string) => new File([text], 'board.json');
  await expect(readCalibration(file('{"profile": {}}'))).resolves.toEqual({ profile: {} });
  await expect(readCalibration(file('[1]'))).rejects.toThrow('no JSON object');
  await expect(readCalibration(file('x'))).rejects.toThrow('no JSON object');
  await expect(readCalibration(file(' '.repeat((1 << 20) + 1)))).rejects.toThrow('larger than any');
});
