/** Commands to a run: change its cluster, or cancel it. */
import { notifications } from '@mantine/notifications';
import { api, sentence } from '@/api/client';
import type { Command } from '@/api/types';

/** Requests a change of the running cluster; an event confirms it. Returns false after a refusal, which it shows. */
export async function sendChange(id: number, command: Exclude<Command, { kind: 'stop' }>): Promise<boolean> {
  return orShowError('The change was not accepted', api.post(`/runs/${id}/changes`, { command }));
}

/** Cancels a run, running or queued. */
export async function cancelRun(id: number): Promise<boolean> {
  return orShowError('The run could not be stopped', api.post(`/runs/${id}/cancel`));
}

async function orShowError(title: string, request: Promise<unknown>): Promise<boolean> {
  try {
    await request;
    return true;
  } catch (error) {
    notifications.show({ title, message: sentence(error), color: 'red' });
    return false;
  }
}
