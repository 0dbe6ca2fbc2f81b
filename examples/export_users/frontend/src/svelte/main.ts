import { mount } from 'svelte';
import '../session';
import ExportUsers from './ExportUsers.svelte';

mount(ExportUsers, { target: document.getElementById('page')! });
