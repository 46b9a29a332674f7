/** What the page asks the server: the workers with the queue, and what people added. */
import { useQuery } from '@tanstack/react-query';
import { api } from '@/api/client';
import { FLEET } from '@/api/queries';
import type { AddedModels, CalibratedMachine } from '@/api/types';

const EVERY_MS = 2_000;

export function useFleet() {
  return useQuery({ ...FLEET, refetchInterval: EVERY_MS, staleTime: 0 });
}

export function useAddedModels() {
  return useQuery({
    queryKey: ['models'],
    queryFn: ({ signal }) => api.get<AddedModels>('/models', signal),
  });
}

export function useCalibratedMachines() {
  return useQuery({
    queryKey: ['machines'],
    queryFn: ({ signal }) => api.get<CalibratedMachine[]>('/machines', signal),
  });
}
