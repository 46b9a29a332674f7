import type { DeviceSpec, DiskPreset, LinkPreset } from './types';

/** A device for tests, without its name. */
export const DEVICE: Omit<DeviceSpec, 'name'> = {
  role: 'worker',
  title: '',
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
  half_rows: 2,
  format_rates: [],
  efficiencies: [],
  family_rates: [],
  compute_model: 'roofline',
  measured_scale: 1,
  watts: 0,
  j_per_memory_byte: 0,
  j_per_disk_byte: 0,
  source: '',
};

/** Kinds of links for tests: with equal directions, and with unequal ones. */
export const LINK_PRESETS: LinkPreset[] = [
  {
    name: 'gigabit-ethernet',
    title: 'Gigabit Ethernet',
    nominal_bit_per_s: 1e9,
    bit_per_s: 940e6,
    reverse_bit_per_s: null,
    delay_s: 1e-4,
    jitter_s: 0,
    loss_frac: 0,
    source: 'measured with iperf3',
  },
  {
    name: 'lte',
    title: '4G mobile network',
    nominal_bit_per_s: 150e6,
    bit_per_s: 7.6e6,
    reverse_bit_per_s: 29.5e6,
    delay_s: 0.01,
    jitter_s: 0.005,
    loss_frac: 0.001,
    source: 'measured by many',
  },
];

export const DISK_PRESETS: DiskPreset[] = [
  {
    name: 'microsd-a1',
    title: 'microSD A1',
    nominal_byte_per_s: 50e6,
    byte_per_s: 45e6,
    source: 'measured with dd',
  },
];
