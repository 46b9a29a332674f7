/** A small drawing for tests of this room and of the editor. */
import { DEVICE } from '@/api/fixtures';
import type { DevicePreset } from '@/api/types';
import { addDevice, addSwitch, connect, type Drawing, emptyDrawing } from './drawing';

export const board: DevicePreset = {
  ...DEVICE,
  name: 'board',
  title: 'A board',
  watts: 5,
  source: 'made up',
};

/** device-1, device-2 and device-3 on switch-1. */
export function star(): Drawing {
  let { drawing } = addSwitch(emptyDrawing('test'), { x: 200, y: 200 });
  for (const x of [0, 200, 400]) {
    const added = addDevice(drawing, board, { x, y: 0 });
    drawing = connect(added.drawing, added.name, 'switch-1');
  }
  return drawing;
}
