/** Events of a run, as its WebSocket sends them: names for the generated types. */
import type { Schemas } from './schemas';

export type SpanKind = Span['kind'];
/** One activity of one device. Times are virtual seconds from the start of the run. */
export type Span = Omit<Schemas['Span'], 'type'>;
/** One event in time: token_emitted, request_arrived, link_changed, link_down, device_lost, memory… */
export type Mark = Omit<Schemas['Mark'], 'type'>;
/** What a run was predicted to take from here on, right after a change. */
export type RestPredicted = Omit<Schemas['RestPredicted'], 'type'>;
export type RunEvent = EventFrame['events'][number];
/** One message of the run's WebSocket; an empty list of events is a heartbeat. */
export type EventFrame = Schemas['EventFrame'];
