import type { DeviceSpec } from '@/api/types';
import {
  BYTE_RATE,
  DOLLARS,
  FACTOR,
  FLOP_RATE,
  POWER,
  type Quantity,
  ROWS,
  SIZE,
  TIME,
  TIME_PER_BYTE,
} from '@/format/quantities';

type NumericField = {
  [Key in keyof DeviceSpec]-?: DeviceSpec[Key] extends number | null | undefined ? Key : never;
}[keyof DeviceSpec];

export interface DeviceField {
  key: NumericField;
  label: string;
  quantity: Quantity;
  help?: string;
  /** Present if the field may be empty: what an empty field means. */
  optional?: string;
}

interface FieldGroup {
  title: string;
  fields: readonly DeviceField[];
  /** Whether the group is closed until somebody opens it. */
  folded?: boolean;
}

/** The numeric fields of a device, grouped as the panel shows them. */
export const DEVICE_FIELDS: readonly FieldGroup[] = [
  {
    title: 'Compute',
    fields: [
      { key: 'flop_per_s', label: 'Peak rate (fp32)', quantity: FLOP_RATE },
      { key: 'op_overhead_s', label: 'Fixed time per kernel', quantity: TIME },
      {
        key: 'half_rows',
        label: 'Half of the peak rate at',
        quantity: ROWS,
        help: 'Rows of a matrix product: few for processors, more for accelerators',
      },
    ],
  },
  {
    title: 'Memory',
    fields: [
      { key: 'memory_bytes', label: 'Memory', quantity: SIZE, help: 'For weights, KV cache and activations' },
      {
        key: 'reserved_bytes',
        label: 'Kept by the operating system',
        quantity: SIZE,
        help: 'Part of the memory: plans and runs have the rest',
      },
      {
        key: 'on_chip_weight_bytes',
        label: 'On-chip memory for weights',
        quantity: SIZE,
        optional: 'all of it',
      },
      {
        key: 'tile_memory_bytes',
        label: 'Memory for tiles (L1)',
        quantity: SIZE,
        optional: 'not stated',
      },
      { key: 'memory_byte_per_s', label: 'Memory bandwidth', quantity: BYTE_RATE },
      { key: 'disk_byte_per_s', label: 'Disk read rate', quantity: BYTE_RATE },
      {
        key: 'staging_byte_per_s',
        label: 'Copy accelerator ↔ network',
        quantity: BYTE_RATE,
        optional: 'no cost',
      },
    ],
  },
  {
    title: 'Network, power and price',
    fields: [
      { key: 'message_overhead_s', label: 'Fixed time per message sent', quantity: TIME },
      { key: 'receive_overhead_s', label: 'Fixed time per message received', quantity: TIME },
      { key: 'watts', label: 'Power while computing', quantity: POWER },
      { key: 'price_usd', label: 'Price', quantity: DOLLARS, optional: 'not stated' },
    ],
  },
  {
    title: 'Advanced: the runtime',
    folded: true,
    fields: [
      {
        key: 'dispatch_s',
        label: 'Fixed time per operation',
        quantity: TIME,
        help: 'An operation is several kernels',
      },
      {
        key: 'token_s',
        label: 'Choosing a token',
        quantity: TIME,
        help: 'On the source, after each token',
      },
      {
        key: 'handover_s',
        label: 'Hand-over to the compute thread',
        quantity: TIME,
        help: 'Per operation that runs there',
      },
      {
        key: 'byte_overhead_s',
        label: 'Time per byte, each end',
        quantity: TIME_PER_BYTE,
        help: 'Copies between program and network stack',
      },
    ],
  },
];

export const MEASURED_SCALE: DeviceField = {
  key: 'measured_scale',
  label: 'Factor on measured host times',
  quantity: FACTOR,
};
