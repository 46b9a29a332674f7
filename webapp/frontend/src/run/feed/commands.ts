/** What a person may do to a run: requests that change something on the server. */
import { notifications } from '@mantine/notifications';
import { api, sentence } from '@/api/client';
import type { Command } from '@/api/types';

/** Asks for a change of the running cluster; its effect comes back as an event. False: refused, and said so. */
export async function sendChange(id: number, command: Exclude<Command, { kind: 'stop' }>): Promise<boolean> {
  return told('The change was not accepted', api.post(`/runs/${id}/changes`, { command }));
}

/** Ends a run, or takes it out of the queue. */
export async function cancelRun(id: number): Promise<boolean> {
  return told('The run could not be stopped', api.post(`/runs/${id}/cancel`));
}

async function told(title: string, request: Promise<unknown>): Promise<boolean> {
  try {
    await request;
    return true;
  } catch (error) {
    notifications.show({ title, message: sentence(error), color: 'red' });
    return false;
  }
}
