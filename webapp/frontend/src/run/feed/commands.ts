/** Commands to a run: change its cluster, cancel it, or ask one that serves. */
import { notifications } from '@mantine/notifications';
import { api, sentence } from '@/api/client';
import type { LiveCommand } from '@/api/types';

/** Requests a change of the running cluster; an event confirms it. Returns false after a refusal, which it shows. */
export async function sendChange(id: number, command: LiveCommand): Promise<boolean> {
  return orShowError('The change was not accepted', api.post(`/runs/${id}/changes`, { command }));
}

/** Cancels a run, running or queued. */
export async function cancelRun(id: number): Promise<boolean> {
  return orShowError('The run could not be stopped', api.post(`/runs/${id}/cancel`));
}

/** Sends a prompt to a run that serves. Returns the name of the request, null after a refusal, which it shows. */
export async function ask(id: number, text: string, newTokens: number): Promise<string | null> {
  try {
    const body = { text, new_tokens: newTokens };
    return (await api.post<{ id: string }>(`/runs/${id}/requests`, body)).id;
  } catch (error) {
    notifications.show({ title: 'The request was not accepted', message: sentence(error), color: 'red' });
    return null;
  }
}

/** Cancels a request to a run that serves. */
export async function withdraw(id: number, name: string): Promise<boolean> {
  return orShowError('The request could not be cancelled', api.delete(`/runs/${id}/requests/${name}`));
}

/** Lets a run that serves finish. */
export async function endService(id: number): Promise<boolean> {
  return orShowError('The service could not be ended', api.post(`/runs/${id}/end-service`));
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
