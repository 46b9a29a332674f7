/** The requests that people have sent to a run that serves, folded from its marks. */
import type { Mark } from '@/api/types';
import { number, text } from './facts';

export interface ServedRequest {
  request: number;
  /** The sender's name for it. */
  id: string;
  by: string;
  prompt: string;
  promptTokens: number;
  newTokens: number;
  state: 'waiting' | 'working' | 'answered' | 'cancelled';
  /** Why it was cancelled. */
  reason: string;
  accepted_s: number;
  begun_s: number | null;
  ended_s: number | null;
  answer: string;
  /** Virtual times of its tokens. */
  token_s: number[];
}

const MAX_REQUESTS = 500;

const isOpen = ({ state }: ServedRequest) => state === 'waiting' || state === 'working';

export class Service {
  readonly requests: ServedRequest[] = [];
  /** By the sender's name for a request, why it was not taken. */
  readonly refused = new Map<string, string>();
  /** Why no more requests are taken; '' while they are. */
  ended = '';
  /** Whether the run takes requests while it goes on. */
  serves = false;
  private readonly byNumber = new Map<number, ServedRequest>();
  private readonly unanswered = new Set<number>();
  private busySince_s = 0;
  private busyBefore_s = 0;

  refuse(id: string, reason: string): void {
    this.refused.set(id, reason);
  }

  apply(mark: Mark): void {
    if (mark.name === 'service_ended') {
      this.ended = text(mark.facts['reason']);
      return;
    }
    if (mark.name === 'request_accepted') return this.accept(mark);
    if (mark.name === 'request_finished' || mark.name === 'request_cancelled') this.settle(mark);
    const request = this.byNumber.get(number(mark.facts['request'], 0));
    if (!request) return;
    switch (mark.name) {
      case 'request_begun':
        request.state = 'working';
        request.begun_s = mark.time_s;
        return;
      case 'token_emitted':
        request.answer += text(mark.facts['text']);
        request.token_s.push(mark.time_s);
        return;
      case 'request_finished':
      case 'request_cancelled':
        request.state = mark.name === 'request_finished' ? 'answered' : 'cancelled';
        request.reason = text(mark.facts['reason']);
        request.ended_s = mark.time_s;
        return;
    }
  }

  /** Whether it waits for somebody to ask. */
  get isFree(): boolean {
    return this.serves && !this.ended && !this.requests.some(isOpen);
  }

  /** Virtual seconds so far in which somebody waited for an answer. */
  busy_s(now_s: number): number {
    return this.busyBefore_s + (this.unanswered.size > 0 ? Math.max(now_s - this.busySince_s, 0) : 0);
  }

  /** How many requests are before this one; 0 for one in work. */
  ahead(request: ServedRequest): number {
    return this.requests.filter((other) => other.request < request.request && isOpen(other)).length;
  }

  private settle(mark: Mark): void {
    const wasOpen = this.unanswered.delete(number(mark.facts['request'], -1));
    if (wasOpen && this.unanswered.size === 0) this.busyBefore_s += mark.time_s - this.busySince_s;
  }

  private accept(mark: Mark): void {
    const index = number(mark.facts['request'], 0);
    if (this.unanswered.size === 0) this.busySince_s = mark.time_s;
    this.unanswered.add(index);
    const request: ServedRequest = {
      request: index,
      id: text(mark.facts['id']),
      by: text(mark.facts['by']),
      prompt: text(mark.facts['text']),
      promptTokens: number(mark.facts['prompt_tokens'], 0),
      newTokens: number(mark.facts['new_tokens'], 0),
      state: 'waiting',
      reason: '',
      accepted_s: mark.time_s,
      begun_s: null,
      ended_s: null,
      answer: '',
      token_s: [],
    };
    this.byNumber.set(request.request, request);
    this.requests.push(request);
    if (this.requests.length > MAX_REQUESTS) {
      const dropped = this.requests.shift();
      if (dropped) this.byNumber.delete(dropped.request);
    }
  }
}
