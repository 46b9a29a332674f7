/** What travels between server and browser, written after the server's own types. SI units inside. */
export * from './types/advice';
export * from './types/catalogue';
export * from './types/cluster';
export * from './types/events';
export * from './types/fleet';
export * from './types/report';
export * from './types/responses';
export * from './types/run';
