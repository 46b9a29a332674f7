/** A small drawing for tests of this room and of the editor. */
import type { DevicePreset } from '@/api/types';
import { addDevice, addSwitch, connect, type Drawing, emptyDrawing } from './drawing';

export const board: DevicePreset = {
  name: 'board',
  role: 'worker',
  title: 'A board',
  flop_per_s: 1e9,
  memory_bytes: 1e9,
  memory_byte_per_s: 1e9,
  on_chip_weight_bytes: null,
  disk_byte_per_s: 1e8,
  staging_byte_per_s: null,
  message_overhead_s: 1e-4,
  receive_overhead_s: 0,
  byte_overhead_s: 0,
  dispatch_s: 0,
  token_s: 0,
  handover_s: 0,
  basis: null,
  assumed_efficiency: null,
  op_overhead_s: 2e-5,
  half_rows: 24,
  efficiencies: [],
  family_rates: [],
  compute_model: 'roofline',
  measured_scale: 1,
  watts: 5,
  j_per_memory_byte: 0,
  j_per_disk_byte: 0,
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
