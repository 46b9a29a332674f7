/** The tokens of a run in the order in which they came. */
import { type Facts, number, text } from './facts';
import { Ring } from './rings';

export interface Token {
  request: number;
  index: number;
  token: number;
  text: string;
  latency_s: number;
  time_s: number;
}

const MAX_TOKENS = 20_000;

export class TokenLog extends Ring<Token> {
  /** By request the time of its arrival or newest token: the next token's latency counts from there. */
  private readonly since_s = new Map<number, number>();

  constructor() {
    super(MAX_TOKENS);
  }

  arrived(time_s: number, facts: Facts): void {
    this.since_s.set(number(facts['request'], 0), time_s);
  }

  emitted(time_s: number, facts: Facts): void {
    const request = number(facts['request'], 0);
    const elapsed_s = time_s - (this.since_s.get(request) ?? 0);
    this.since_s.set(request, time_s);
    this.push({
      request,
      index: number(facts['index'], 0),
      token: number(facts['token'], -1),
      text: text(facts['text']),
      latency_s: number(facts['latency_s'], elapsed_s),
      time_s,
    });
  }
}
