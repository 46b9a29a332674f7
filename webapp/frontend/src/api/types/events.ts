import type { RunReport } from './report';
import type { Plan, RunState } from './run';

export type SpanKind = 'compute' | 'send' | 'recv' | 'load' | 'store' | 'evict' | 'wait' | 'stage';

/** One activity of one device. Times are virtual seconds from the start of the run. */
export interface Span {
  device: string;
  kind: SpanKind;
  name: string;
  layer: number;
  start_s: number;
  end_s: number;
  bytes: number;
  payload_bytes: number;
  flops: number;
  peer: string;
  request: number;
  token: number;
  message: number;
}

/** One event in time: token_emitted, request_arrived, link_changed, link_down, device_lost, memory… */
export interface Mark {
  time_s: number;
  name: string;
  device: string;
  facts: Record<string, unknown>;
}

/** State of one direction of a link: rate in use, asked for, and measured capacity. */
export interface LinkSample {
  link: number;
  forward: boolean;
  bit_per_s: number;
  set_bit_per_s: number;
  measured_bit_per_s: number | null;
  up: boolean;
}

export type RunEvent =
  | { type: 'state'; state: RunState; detail: string }
  | ({ type: 'plan' } & Plan)
  | ({ type: 'span' } & Span)
  | ({ type: 'mark' } & Mark)
  | { type: 'links'; time_s: number; links: LinkSample[] }
  | { type: 'log'; level: 'info' | 'warning' | 'error'; text: string }
  | { type: 'clock'; time_s: number; wall_s: number }
  | ({ type: 'report' } & RunReport);

/** One message of the run's WebSocket; an empty list of events is a heartbeat. */
export interface EventFrame {
  cursor: string;
  events: RunEvent[];
  server_time: number;
}
