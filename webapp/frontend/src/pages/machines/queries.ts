/** What the page asks the server: the workers with the queue, and what people added. */
import { useQuery } from '@tanstack/react-query';
import { api } from '@/api/client';
import { FLEET } from '@/api/queries';
import type { AddedModels, Board, CalibratedMachine } from '@/api/types';

const EVERY_MS = 2_000;
/** A board says a sign of life as often. */
const BOARDS_EVERY_MS = 5_000;

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

export function useBoards() {
  return useQuery({
    queryKey: ['boards'],
    queryFn: ({ signal }) => api.get<Board[]>('/nodes', signal),
    refetchInterval: BOARDS_EVERY_MS,
    staleTime: 0,
  });
}
